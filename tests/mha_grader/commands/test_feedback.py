"""`mha-grade feedback`: where its pages link to."""

from mha_grader import cli
from mha_grader.course.folders import Course
from mha_grader.instructor import gradebook


def test_feedback_and_report_link_to_the_book_where_its_address_is_set(graded, capsys):
    config = graded / "nbgrader_config.py"
    text = config.read_text()
    try:
        config.write_text(text + '\nc.FeedbackExporter.book_url = "https://a.b/book"\n')
        assert gradebook.book_url(Course(graded)) == "https://a.b/book"
        config.write_text(text + '\nc.FeedbackExporter.book_url = "a.b/book"\n')
        assert cli.main(["--course", str(graded), "feedback", "small"]) == 1
        assert "https://example.org/" in capsys.readouterr().err
    finally:
        config.write_text(text)
    assert gradebook.book_url(Course(graded)) == ""
