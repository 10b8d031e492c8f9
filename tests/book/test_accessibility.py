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


def test_pale_marks_in_code_and_pale_words_on_a_coloured_box_are_found_among_others(page):
    grey = "<p>grey is <a href='#x' style='color:#000'>a link</a></p>" * 3
    code = "<pre><code><span style='color:#ccd'>pale</span> = 1</code></pre>"
    box = "<div style='background:#345'><p><b style='color:#456'>on a box</b></p></div>"
    page.set_content(f"<html lang=en><title>t</title><main>{grey}{code}{grey}{box}</main>")
    findings = [finding for finding in serious_findings(page)[0] if finding["theme"] == "dark"]
    (contrast,) = [finding for finding in findings if finding["rule"] == "color-contrast"]
    assert {"#ccccdd", "#445566"} == {
        word for word in ("#ccccdd", "#445566") if word in str(contrast["first"])
    }
