"""What a course is made of: its assignments, how they are written, records of grading and the students' kit."""
