"""What is raised when a course's own files are wrong."""


class CourseError(Exception):
    """The course's own files are not as they should be; the text says what to do."""
