"""The examination finds what is wrong. `test_pages` examines every page."""

from .accessibility import serious_findings


def test_axe_finds_what_is_wrong(page):
    page.set_content(
        "<html lang=en><title>t</title><main><p style='color:#ccc'>pale</p><img src='data:,'></main>"
    )
    found = [(finding["rule"], finding.get("theme")) for finding in serious_findings(page)]
    assert found == [("image-alt", None), ("color-contrast", "light"), ("color-contrast", "dark")]
