# Everything a person types. The work is in scripts/, one file per target.
.DEFAULT_GOAL := help
.PHONY: help deps build bundle run base-image test fuzz bench fmt lint bindings clean

PROFILE ?= release
export PROFILE

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## install what is missing, build, and start AgentBox
	@scripts/run

test: ## all checks and tests, on a real engine and desktop
	@scripts/test

fuzz: ## throw noise at every parser a box can reach, a minute each
	@scripts/fuzz 60

build: ## build the programs (PROFILE=dev|release)
	@scripts/deps build
	@scripts/build

bundle: ## make the packages people install, in target/bundle
	@scripts/deps build
	@scripts/bundle

deps: ## install what building, running and testing need
	@scripts/deps build engine test

base-image: ## make the base of the box image without a registry
	@scripts/base-image --import

bench: ## measure the promised numbers
	@scripts/bench

fmt: ## format the code
	@cargo fmt --all

lint: ## the compiler's and clippy's opinion
	@scripts/build --ui
	@cargo clippy --workspace --all-targets -- -D warnings

bindings: ## write the webview's types from the wire types
	@scripts/bindings

clean: ## remove what was built
	@rm -rf target ui/dist ui/node_modules
