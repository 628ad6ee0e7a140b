# `make` or `make help` lists what there is. Each target sets up what it needs (`tools/setup`) and asks nothing.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.SILENT:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

.PHONY: help
help: ## List the targets
	echo 'make TARGET, where TARGET is one of'
	sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 16

.PHONY: demo
demo: ## Deploy, relate and scale two charms in a temporary directory, and kill units and processes
	tools/demo

.PHONY: demo-bundle
demo-bundle: ## Deploy a bundle, back up and restore, replace certificates, gather logs
	tools/demo-bundle

.PHONY: demo-hosts
demo-hosts: ## Join agents and users on three hosts, cut one host off and kill another
	tools/demo-hosts

.PHONY: demo-ha
demo-ha: ## Run three controllers; kill, cut off and freeze the one that leads under load, upgrade all
	tools/demo-ha

.PHONY: demo-trace
demo-trace: ## Trace one config command to the last hook that it causes
	tools/demo-trace

.PHONY: demo-workload
demo-workload: ## Run servers in WebAssembly and in containers; configure, expose, kill and scrape them
	tools/demo-workload

.PHONY: attack
attack: ## Let hostile callers attack a controller, and print what stopped each and what it cost others
	tools/attack

.PHONY: demo-python
demo-python: setup ## Pack two Python charms, and drive them by jubilant
	tools/demo-python

.PHONY: test
test: setup ## Build the charms and run every test
	tools/test

# What follows `bench` names what is measured: `make bench scale`.
benchmarks := hook commits python memory scale log ha workloads
ifeq (bench,$(firstword $(MAKECMDGOALS)))
.PHONY: $(benchmarks)
$(benchmarks): ; @:
endif

.PHONY: bench
bench: setup ## Measure hooks, host calls and commits beside their baselines (`make bench scale`: large models)
	tools/bench $(filter $(benchmarks),$(MAKECMDGOALS))

.PHONY: bench-ha
bench-ha: setup ## Measure three controllers beside one, failovers under load, and joins
	tools/bench ha

.PHONY: model-check
model-check: setup ## Visit every state of small models, and see that removal always ends (an hour)
	tools/model-check

# The number of seeds of `make simulate`.
SEEDS ?= 10000

.PHONY: simulate
simulate: setup ## Run SEEDS seeds of faults (10000) against three simulated controllers (hours)
	tools/simulate '$(SEEDS)'

# The number of rounds of each kind of `make rounds`.
ROUNDS ?= 1000

.PHONY: rounds
rounds: setup ## Run ROUNDS rounds of faults (1000) of each kind with real processes (hours)
	tools/rounds '$(ROUNDS)'

.PHONY: mutations
mutations: setup ## Make each mutation of the program in a copy, and see that tests find it (minutes)
	tools/mutations

# Where `make install` puts everything; packages say DESTDIR, too.
PREFIX ?= /usr/local

.PHONY: install
install: ## Install the binary, completions, manual pages and units below PREFIX (/usr/local)
	tools/setup install && tools/rocksdb
	tools/install --prefix '$(PREFIX)' --destdir '$(DESTDIR)'

.PHONY: deb
deb: ## Make a Debian package in target
	tools/setup install && tools/rocksdb
	tools/deb

.PHONY: image
image: ## Make an OCI image with podman or docker
	tools/setup install && tools/rocksdb
	rm -rf target/image
	tools/install --prefix /usr --destdir target/image
	engine=$$(command -v podman || command -v docker) || { echo 'make image: neither podman nor docker is here' >&2; exit 1; }
	"$$engine" build -t periapt -f packaging/Containerfile target/image

.PHONY: lint
lint: setup ## Check formatting, clippy and documentation, warnings denied
	tools/lint

.PHONY: fmt
fmt: setup ## Format all Rust code
	tools/fmt

.PHONY: guests
guests: setup ## Build the charms to core modules in target/guests
	tools/guest

.PHONY: setup
setup: ## Install what the builds need, or say what is missing
	tools/setup
	tools/rocksdb
