"""The examination finds what is wrong. `test_visits` examines every page."""

from .accessibility import serious_findings

PALE = "<html lang=en><title>t</title><main><p style='color:#ccc'>pale</p><img src='data:,'></main>"


def test_axe_finds_what_is_wrong(page):
    page.set_content(PALE)
    findings, looks = serious_findings(page)
    found = [(finding["rule"], finding.get("theme")) for finding in findings]
    assert found == [("image-alt", None), ("color-contrast", "light"), ("color-contrast", "dark")]
    assert len(looks) == 1


def test_colours_are_examined_once_for_each_look(page):
    page.set_content(PALE)
    known = serious_findings(page)[1]
    page.set_content(PALE.replace("</main>", "<p style='color:#ddd'>pale</p></main>"))
    findings, looks = serious_findings(page, known)
    assert len(looks) == 1
    assert [finding["rule"] for finding in findings] == ["image-alt", "color-contrast", "color-contrast"]
    assert "#ddd" in str(findings[-1]["first"])
