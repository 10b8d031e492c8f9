"""What axe-core finds on a page, in light and in dark colours."""

from axe_playwright_python.base import AXE_SCRIPT

# Thousands of words look alike, on one page and on all. To examine colours, one of each look is enough.
NEW_LOOKS = """known => {
    const words = [...document.body.querySelectorAll('*')].filter(element => !element.closest('mjx-container')
        && [...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim()))
    const looks = words.map(() => '')
    for (const theme of ['dark', 'light']) {
        document.documentElement.dataset.theme = theme
        const behind = new Map()  // what is seen through an element
        const backdrop = element => {
            if (!element) return ''
            if (!behind.has(element)) {
                const {backgroundColor, backgroundImage, opacity} = getComputedStyle(element)
                const own = `${backgroundColor} ${backgroundImage} ${opacity}/`
                const nothing = own === 'rgba(0, 0, 0, 0) none 1/'
                behind.set(element, (nothing ? '' : own) + backdrop(element.parentElement))
            }
            return behind.get(element)
        }
        words.forEach((element, i) => {
            const {color, fontSize, fontWeight, textDecorationLine} = getComputedStyle(element)
            const around = getComputedStyle(element.parentElement).color
            const link = element.closest('a') ? 'a' : ''
            looks[i] += [theme, link, color, around, fontSize, fontWeight, textDecorationLine, backdrop(element)]
        })
    }
    const first = new Map()
    looks.forEach((look, i) => { if (!first.has(look) && !known.includes(look)) first.set(look, words[i]) })
    window.oneOfEachLook = [...first.values()]
    return [...first.keys()]
}"""
SERIOUS = """async ([newLooks, options]) => {
    const context = newLooks ? {include: window.oneOfEachLook} : document
    const found = await axe.run(context, {...options, resultTypes: ['violations']})
    const serious = found.violations.filter(({impact}) => ['serious', 'critical'].includes(impact))
    return serious.map(({id, help, nodes}) => ({
        rule: id, help, first: nodes.slice(0, 3).map(node => [node.target.join(' '), node.failureSummary])
    }))
}"""
# What MathJax makes is its own, and code is text: both are most of the elements of a page, and mean nothing more.
WITHOUT_MARKS = """() => {
    for (const formula of document.querySelectorAll('mjx-container')) formula.replaceWith('x')
    for (const code of document.querySelectorAll('pre')) code.textContent = code.textContent
}"""
ABOUT_COLOURS = ["color-contrast", "link-in-text-block"]


def serious_findings(page, known_looks=()):
    """The serious findings on a page that is open, and the looks of its words that were not known.

    The page loses its mathematics and the colours of its code.
    """
    page.add_style_tag(content="* { transition: none !important }")  # else colours are seen half way
    page.evaluate(AXE_SCRIPT)
    looks = page.evaluate(NEW_LOOKS, list(known_looks))
    in_colour = []
    for theme in ("light", "dark") if looks else ():
        page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        found = page.evaluate(SERIOUS, [True, {"runOnly": ABOUT_COLOURS}])
        in_colour += [{**finding, "theme": theme} for finding in found]
    page.evaluate(WITHOUT_MARKS)
    others = {"rules": {rule: {"enabled": False} for rule in ABOUT_COLOURS}}
    return page.evaluate(SERIOUS, [False, others]) + in_colour, looks
