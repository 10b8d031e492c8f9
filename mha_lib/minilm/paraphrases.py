"""Fifty triples of sentences, written for this course: an anchor, a paraphrase of it, and a distractor.

The paraphrase says what the anchor says in other words. The distractor repeats words of the anchor and says
something else, so that counting common words picks the wrong one.
"""

import re

TRIPLES = (
    (
        "The bank raised its interest rates.",
        "Loans became more expensive.",
        "The hotel raised its flags.",
    ),
    (
        "A dog barked all night.",
        "The puppy was noisy until morning.",
        "A tap dripped all night.",
    ),
    (
        "She broke her leg while skiing.",
        "She was injured on the slopes.",
        "She broke her promise to the bank.",
    ),
    (
        "The train was late again.",
        "Once more the railway was delayed.",
        "The wall was painted again.",
    ),
    (
        "He forgot to water the plants.",
        "His flowers dried up.",
        "He forgot to call the lawyer.",
    ),
    (
        "The soup was far too salty.",
        "The broth had too much salt.",
        "The prison was far too crowded.",
    ),
    (
        "Our teacher praised the homework.",
        "The instructor liked our exercises.",
        "Our teacher repaired the roof.",
    ),
    (
        "The film bored the whole audience.",
        "Everyone found the movie dull.",
        "The whole factory was searched.",
    ),
    (
        "The baby fell asleep in the car.",
        "An infant dozed on the drive.",
        "The price fell in the spring.",
    ),
    (
        "Prices for bread have doubled.",
        "A loaf costs twice as much now.",
        "Visits for refugees have doubled.",
    ),
    (
        "The lake froze over in January.",
        "In winter the pond turned to ice.",
        "The trial was over in January.",
    ),
    (
        "My computer crashed this morning.",
        "Today my laptop stopped working.",
        "My cousin married this morning.",
    ),
    (
        "The farmer sold all his cows.",
        "The cattle were bought from him.",
        "The poet sold all his books.",
    ),
    (
        "They married in a small church.",
        "Their wedding took place in a chapel.",
        "They play in a small orchestra.",
    ),
    (
        "The doctor told him to stop smoking.",
        "The physician advised against cigarettes.",
        "The referee told him to leave.",
    ),
    (
        "A storm destroyed the harbour.",
        "Heavy winds wrecked the port.",
        "A scandal destroyed the marriage.",
    ),
    (
        "The thief escaped through the window.",
        "The burglar climbed out quickly.",
        "The sun shone through the window.",
    ),
    (
        "I would like a cup of tea.",
        "Could you bring me a hot drink?",
        "I would like a pair of shoes.",
    ),
    (
        "The children built a snowman.",
        "The kids made a snow figure.",
        "The Romans built a road.",
    ),
    (
        "Nobody understood the lecture.",
        "The talk confused all the listeners.",
        "Nobody cleaned the stable.",
    ),
    (
        "The company dismissed fifty workers.",
        "The firm laid off staff.",
        "The court dismissed fifty complaints.",
    ),
    (
        "Her grandmother lives in the country.",
        "Granny has a rural home.",
        "Her luggage is in the cellar.",
    ),
    (
        "The match ended without a winner.",
        "The game was a draw.",
        "The meal ended without a dessert.",
    ),
    (
        "He plays the violin beautifully.",
        "He is a gifted fiddler.",
        "He cuts the hedge beautifully.",
    ),
    (
        "The road was closed after an accident.",
        "A crash blocked the street.",
        "The case was closed after an hour.",
    ),
    (
        "The cake burned in the oven.",
        "The dessert was baked for too long.",
        "The letter burned in the fire.",
    ),
    (
        "Astronomers discovered a new planet.",
        "Scientists found an unknown world.",
        "Accountants discovered a new error.",
    ),
    (
        "Please turn down the music.",
        "Could you make the song quieter?",
        "Please turn at the bridge.",
    ),
    (
        "The shop opens at nine.",
        "It starts selling after breakfast.",
        "The moon rises at nine.",
    ),
    (
        "Rain ruined our picnic.",
        "We got wet while eating outdoors.",
        "Debts ruined our uncle.",
    ),
    (
        "The knife is very sharp.",
        "This blade cuts well.",
        "The critic is very sharp.",
    ),
    (
        "She passed the driving test.",
        "She got her car licence.",
        "She passed the old castle.",
    ),
    (
        "The old bridge collapsed.",
        "An ancient crossing fell into the river.",
        "The old king abdicated.",
    ),
    (
        "He is afraid of spiders.",
        "Insects with eight legs scare him.",
        "He is proud of Portugal.",
    ),
    (
        "The museum is free on Sundays.",
        "At the weekend the exhibition costs nothing.",
        "The dentist is ill on Sundays.",
    ),
    (
        "My phone needs charging.",
        "The battery of my mobile is empty.",
        "My horse needs feeding.",
    ),
    (
        "The jury found her guilty.",
        "She was convicted in court.",
        "The diver found her ring.",
    ),
    (
        "Wolves returned to the forest.",
        "Wild predators live in the woods again.",
        "Sailors returned to the harbour.",
    ),
    (
        "The singer lost her voice.",
        "The vocalist was too hoarse to perform.",
        "The investor lost her savings.",
    ),
    (
        "The town has no hospital.",
        "Sick people must travel for treatment.",
        "The story has no ending.",
    ),
    (
        "The pilot landed safely.",
        "The plane came down without harm.",
        "The money arrived safely.",
    ),
    (
        "The glass fell and broke.",
        "A tumbler shattered on the floor.",
        "The profits fell and fell.",
    ),
    (
        "The police arrested the wrong man.",
        "An innocent person was detained.",
        "The tourist took the wrong bus.",
    ),
    (
        "Bees are dying out.",
        "Pollinating insects are disappearing.",
        "Lights are going out.",
    ),
    (
        "The novel has a sad ending.",
        "The story finishes in tragedy.",
        "The garage has a green door.",
    ),
    (
        "The king gave up his throne.",
        "The monarch abdicated.",
        "The chef gave up his diet.",
    ),
    (
        "We missed the last bus.",
        "Public transport had stopped already.",
        "We tasted the last cheese.",
    ),
    (
        "The water is not safe to drink.",
        "What comes from this tap is poisonous.",
        "The ladder is not safe to climb.",
    ),
    (
        "The tree lost all its leaves.",
        "Autumn left the branches bare.",
        "The club lost all its members.",
    ),
    (
        "The team won the championship.",
        "The players took the title.",
        "The lawyer won the lawsuit.",
    ),
)


def word_overlap(first: str, second: str) -> float:
    """The share of words that two sentences have in common, among all words of both.

    >>> word_overlap("The dog sleeps.", "The dog barks!")
    0.5
    """
    one, other = (set(re.findall(r"\w+", text.lower())) for text in (first, second))
    return len(one & other) / len(one | other)
