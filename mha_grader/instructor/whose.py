"""Whose the files of an archive are: by the roster if there is one, else by what the platform calls people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from mha_grader.course.folders import Course
from mha_grader.instructor.origins import Origin
from mha_grader.instructor.roster import OWN_NUMBERS, Roster

BY_NUMBER = ("canvas", "sakai", "blackboard", "gradescope")  # whose numbers (or logins) are a user's for good


def there(course: Course, assignment: str) -> dict[str, Origin]:
    """Who handed in what is in submitted/, by id, as far as only the folders tell."""
    folders = course.submitted.glob(f"*/{assignment}") if course.submitted.is_dir() else ()
    return {folder.parent.name: Origin("plain", folder.parent.name) for folder in folders}


def identity(origin: Origin) -> str:
    """One person on one platform, in words."""
    return " ".join(
        filter(None, (origin.name, origin.number and f"({origin.number})", f"by {origin.scheme}"))
    )


def by_roster(found: Collection[Origin], roster: Roster) -> tuple[dict[Origin, str], dict[str, str]]:
    """The ids of those whom the roster knows, and why the others are not known, by what they are called."""
    ids: dict[Origin, str] = {}
    unknown: dict[str, str] = {}
    for origin in sorted(found, key=identity):
        student = roster.find(origin)
        if isinstance(student, str):
            unknown[identity(origin)] = student
        else:
            ids[origin] = student.id
    return ids, unknown


def by_platform(found: Collection[Origin], known: Mapping[str, Origin]) -> dict[Origin, str]:
    """The id of each student in an archive: the number of the user if the platform has one, else the name.

    Moodle's number belongs to one assignment, so it is no id; it is added to a name that several have, and to one
    that is another's id, since students can choose the name that Moodle shows. So is Brightspace's.
    """
    same = {identity(origin): student for student, origin in known.items()}
    several = Counter(name for name, _ in {(origin.name, origin.number) for origin in found})
    ids: dict[Origin, str] = {}
    taken = {student.casefold() for student in known}
    for origin in sorted(found, key=lambda origin: (origin.name, origin.number)):
        student = origin.number if origin.scheme in BY_NUMBER else origin.name
        if identity(origin) in same:
            student = same[identity(origin)]
        elif origin.scheme not in (*BY_NUMBER, "plain"):
            if several[origin.name] > 1:
                student = f"{origin.name} ({origin.number})"
            while student.casefold() in taken:
                student = f"{student} ({origin.number})"
        ids[origin] = same[identity(origin)] = student
        taken.add(student.casefold())
    return ids


def conflict(
    student: str,
    who: Collection[tuple[Origin, ...]],
    before: Origin | None,
    places: dict[str, str],
    ids: Mapping[Origin, str],
    roster: Roster | None,
) -> str | None:
    """Why a student's place cannot be given to what is handed in; None if it can.

    Args:
        student: the id.
        who: those who handed it in, by file; several people at once if they are a group.
        before: who handed in what is there, if something is.
        places: the students by the names that their folders have where capitals make no difference; this one is
            added.
        ids: whose ids are whose.
        roster: the roster, if there is one.
    """
    if len(who) > 1:
        names = sorted(" and ".join(map(identity, people)) for people in who)
        return f"it is said to be of {len(who)} people: {', '.join(names)}"
    if (same := places.setdefault(student.casefold(), student)) != student:
        return f"on some machines its folder would be that of {same}"
    if before is not None and _belongs_to_another(next(iter(who)), before, ids, roster):
        return f"in its place is what {identity(before)} handed in"
    return None


def _belongs_to_another(
    people: Sequence[Origin], before: Origin, ids: Mapping[Origin, str], roster: Roster | None
) -> bool:
    """Whether what lies in a student's place is of somebody else than those who hand in now.

    Args:
        people: who hand in now, several if it is a group.
        before: who handed in what is there.
        ids: whose ids are whose.
        roster: if there is one, it has found one student for both. But a name may have changed hands, or a number
            that students enter themselves; what else the platform tells of the person would tell.
    """
    if roster is None:
        return any(identity(person) != identity(before) or _differ(person, before) for person in people)
    student = roster.find(before)
    same = (
        person
        for person in people
        if len(people) == 1 or isinstance(student, str) or ids.get(person) == student.id
    )
    return any(person.scheme == before.scheme and _differ(person, before) for person in same)


def _differ(person: Origin, before: Origin) -> bool:
    """Whether what a platform tells of two people with one name or number is not the same."""
    if person.scheme in OWN_NUMBERS:
        return "" != before.email != person.email != ""
    by_name = person.scheme in ("moodle", "brightspace") and not person.id_number
    return by_name and "" != before.number != person.number
