# Two commands are enough on a fresh machine: `make verify` and `make test`. `make help` lists the rest.
# Kept to what GNU make 3.81 and a POSIX shell know, for macOS.

BIN  := .venv/bin
JOBS := 2

.DEFAULT_GOAL := help
.PHONY: help venv verify test check oracles diagrams golden bench soak format lock clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/  make \1	\2/p' Makefile | expand -t 18

venv: ## lay .venv from requirements.lock; does nothing when it is up to date
	@sh .ci/venv

verify: venv ## run every check of every machine: explored, proved, fuzzed, replayed
	@$(BIN)/turnproof verify

test: venv ## run the test suite
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

check: venv ## format, lint, types, import direction, stale diagrams and golden numbers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy src tests benchmarks
	$(BIN)/lint-imports --no-logo
	$(BIN)/turnproof draw --check
	$(BIN)/turnproof golden

oracles: venv ## ask SPIN, Rumur and TLC about every system, every machine and 200 random systems (minutes)
	$(BIN)/turnproof oracle
	$(BIN)/python -m pytest -n $(JOBS) -m soak tests/test_oracles_random.py

lock: venv ## pin the newest versions that pyproject.toml allows, for every Python and platform
	@sh .ci/lock

diagrams: venv ## draw diagrams/ again
	$(BIN)/turnproof draw

golden: venv ## write the golden numbers again, for review as a diff
	$(BIN)/turnproof golden --update

bench: venv ## measure beside other libraries, SPIN, Rumur and TLC (half an hour); SAVE=--save keeps it in benchmarks/results
	$(BIN)/python -m benchmarks $(SAVE)

soak: venv ## long random runs, of no use in a hurry
	$(BIN)/python -m pytest -n $(JOBS) -m soak

format: venv ## format the source and sort imports
	$(BIN)/ruff check --select I --fix .
	$(BIN)/ruff format .

clean: ## remove what make made, .venv included
	rm -rf .venv build dist reports .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
