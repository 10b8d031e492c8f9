"""What axe-core finds on a page, in light and in dark colours."""

from axe_playwright_python.base import AXE_SCRIPT

# Thousands of words look alike. One of each look is enough to examine colours.
ONE_OF_EACH_LOOK = """() => {
    const looks = new Map()
    for (const element of document.body.querySelectorAll('*')) {
        if (![...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim())) continue
        let look = ''
        for (let e = element; e; e = e.parentElement) look += `${e.tagName}.${e.className} `
        if (!looks.has(look)) looks.set(look, element)
    }
    window.oneOfEachLook = [...looks.values()]
}"""
SERIOUS = """async ([context, options]) => {
    context ??= {include: window.oneOfEachLook}
    const found = await axe.run(context, {...options, resultTypes: ['violations']})
    const serious = found.violations.filter(({impact}) => ['serious', 'critical'].includes(impact))
    return serious.map(({id, help, nodes}) => ({
        rule: id, help, first: nodes.slice(0, 3).map(node => [node.target.join(' '), node.failureSummary])
    }))
}"""
MATHEMATICS = "mjx-container"  # MathJax's own, and most of the elements of a page


def serious_findings(page):
    """The serious findings on a page that is open."""
    page.add_style_tag(content="* { transition: none !important }")  # else colours are seen half way
    page.evaluate(AXE_SCRIPT)
    found = page.evaluate(
        SERIOUS, [{"exclude": [MATHEMATICS]}, {"rules": {"color-contrast": {"enabled": False}}}]
    )
    page.evaluate(ONE_OF_EACH_LOOK)
    for theme in ("light", "dark"):
        page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        in_colour = page.evaluate(SERIOUS, [None, {"runOnly": ["color-contrast"]}])
        found += [{**finding, "theme": theme} for finding in in_colour]
    return found
