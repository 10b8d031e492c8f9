"""What axe-core finds on a page, in light and in dark colours."""

from axe_playwright_python.base import AXE_SCRIPT

# Thousands of words look alike, on one page and on all. To examine colours, one of each look is enough.
NEW_LOOKS = """known => {
    const words = [...document.body.querySelectorAll('*')].filter(element =>
        [...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim()))
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
        // WCAG 2.1, 1.4.3, asks less of large text
        words.forEach((element, i) => {
            const {color, fontSize, fontWeight, textDecorationLine} = getComputedStyle(element)
            const large = parseFloat(fontSize) >= (fontWeight >= 700 ? 18.66 : 24)
            const around = getComputedStyle(element.parentElement).color
            const link = element.closest('a') ? [around, fontWeight, textDecorationLine] : ''
            looks[i] += [theme, color, large, link, backdrop(element)]
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
# What MathJax makes is its own, and most of the elements of a page.
WITHOUT_FORMULAS = (
    "() => document.querySelectorAll('mjx-container').forEach(formula => formula.replaceWith('x'))"
)
# Code is text; its marks are many and mean nothing but colours.
WITHOUT_MARKS = """() => {
    for (const code of document.querySelectorAll('pre')) {
        code.marks = [...code.childNodes]
        code.textContent = code.textContent
    }
}"""
# Colours depend on an element and those around it. The others are in the way: axe-core looks at what lies where.
ONLY_NEW_LOOKS = """() => {
    for (const code of document.querySelectorAll('pre')) code.replaceChildren(...code.marks)
    const kept = new Set()
    for (let element of window.oneOfEachLook)
        for (; element && !kept.has(element); element = element.parentElement) kept.add(element)
    for (const element of document.body.querySelectorAll(':not(style, script)'))
        if (!kept.has(element)) element.remove()
}"""
ABOUT_COLOURS = ["color-contrast", "link-in-text-block"]


def serious_findings(page, known_looks=()):
    """The serious findings on a page that is open, and the looks of its words that were not known.

    What is left of the page is one word of each look.
    """
    page.add_style_tag(content="* { transition: none !important }")  # else colours are seen half way
    page.evaluate(AXE_SCRIPT)
    page.evaluate(WITHOUT_FORMULAS)
    looks = page.evaluate(NEW_LOOKS, list(known_looks))
    page.evaluate(WITHOUT_MARKS)
    others = {"rules": {rule: {"enabled": False} for rule in ABOUT_COLOURS}}
    findings = page.evaluate(SERIOUS, [False, others])
    page.evaluate(ONLY_NEW_LOOKS)
    for theme in ("light", "dark") if looks else ():
        page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        found = page.evaluate(SERIOUS, [True, {"runOnly": ABOUT_COLOURS}])
        findings += [{**finding, "theme": theme} for finding in found]
    return findings, looks
