"""What an instructor does with a class: collect, gradebook, feedback, report, export."""
