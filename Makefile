# Each target sets up what it needs. PYTHON names the interpreter that .venv is made from.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory
export PYTHON ?= python3
unexport PYTHONDONTWRITEBYTECODE

PACKAGES := settings decoders rules captures client proxy replay scenarios pipeline dashboards cli
JARS := $(patsubst tests/brokers/%/pom.xml,.jars/%,$(wildcard tests/brokers/*/pom.xml)) \
	$(patsubst tests/oracle/%/pom.xml,.jars/oracle-%,$(wildcard tests/oracle/*/pom.xml))
COMPOSE := github.com/compose-spec/compose-go/v2@v2.16.2
TOXIPROXY := github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0
TEST_PACKAGES := javac=openjdk-17-jdk-headless mvn=maven openssl=openssl setpriv=util-linux \
	ip=iproute2 iptables=iptables prometheus=prometheus kcat=kcat tshark=tshark tcpdump=tcpdump curl=curl go=golang-go node=nodejs npm=npm chromium=chromium \
	haproxy=haproxy jq=jq xxd=xxd gcc=gcc python3-config=python3-dev systemd-analyze=systemd strace=strace tmux=tmux \
	krb5-config=libkrb5-dev krb5kdc=krb5-kdc kadmin.local=krb5-admin-server kinit=krb5-user

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

demo: .venv/demo.installed  ## three brokers, klamm in front, and what it sees (needs Python only)
	@exec .venv/bin/klamm demo

test: test-packages .venv/test.installed .venv/gssapi.installed $(JARS) .go/reactions .go/compose-spec.json .js/package-lock.json .venv/compiled  ## unit tests, and tests against real Kafka brokers
	@.venv/bin/python -m tools.run_tests

test-compiled: .venv/compiled
	@.venv/bin/python -m tools.run_tests compiled

test-long: test-packages .venv/test.installed $(JARS) .go/reactions .go/compose-spec.json .js/package-lock.json .venv/compiled  ## the tests that take minutes, and all cases of those that are sampled
	@.venv/bin/python -m pytest tests -q -m "long or sampled"
	@KLAMM_SAMPLE= .venv/bin/python -m tools.run_tests compiled

fuzz: .venv/fuzz.installed  ## any bytes at the decoders, connections, files of packets, captures and rules, ten minutes each
	@.venv/bin/python -m tests.fuzz.fuzz_decode -max_total_time=600 -max_len=1000 -artifact_prefix=.fuzz/ .fuzz/decode
	@.venv/bin/python -m tests.fuzz.fuzz_records -max_total_time=600 -artifact_prefix=.fuzz/ .fuzz/records
	@.venv/bin/python -m tests.fuzz.fuzz_session -max_total_time=600 -max_len=4000 -timeout=25 -artifact_prefix=.fuzz/ .fuzz/session
	@.venv/bin/python -m tests.fuzz.fuzz_packets -max_total_time=600 -max_len=4000 -timeout=25 -artifact_prefix=.fuzz/ .fuzz/packets
	@.venv/bin/python -m tests.fuzz.fuzz_segments -max_total_time=600 -max_len=20000 -timeout=25 -artifact_prefix=.fuzz/ .fuzz/segments
	@.venv/bin/python -m tests.fuzz.fuzz_rules -max_total_time=600 -max_len=4000 -timeout=25 -artifact_prefix=.fuzz/ .fuzz/rules

simulate: .venv/test.installed  ## a simulated cluster and its clients, from many seeds: make simulate SEEDS=10000
	@.venv/bin/python -m tests.simulation --seeds $(or $(SEEDS),10000)

soak: .venv/test.installed .jars/4.4.0  ## real brokers and clients, and one fault after the other: make soak MINUTES=60
	@tools/packages.sh javac=openjdk-17-jdk-headless setpriv=util-linux ip=iproute2 iptables=iptables
	@.venv/bin/python -m tests.soak --minutes $(or $(MINUTES),60)

check: .venv/check.installed  ## lint, formatting, unused code, types, and who may import whom
	@.venv/bin/ruff check --quiet .
	@.venv/bin/ruff format --check --quiet .
	@.venv/bin/python tools/link_packages.py
	@.venv/bin/vulture
	@.venv/bin/vulture $(PACKAGES) benchmarks tools
	@.venv/bin/mypy | sed 's|^.venv/tree/klamm/||'
	@PYTHONPATH=.venv/tree .venv/bin/lint-imports --no-logo

format: .venv/check.installed  ## lay the code out, and mend what the linter can
	@.venv/bin/ruff check --fix .
	@.venv/bin/ruff format .

bench: .venv/compiled .venv/bench.installed  ## speed and memory, beside HAProxy and tshark where they are there
	@tools/packages.sh haproxy=haproxy tshark=tshark || echo "make bench goes on without them" >&2
	@.venv/bin/python -m benchmarks
	@.venv/bin/python -m benchmarks tls
	@.venv/bin/python -m benchmarks connections
	@.venv/bin/python -m benchmarks decode
	@.venv/bin/python -m benchmarks rules
	@.venv/bin/python -m benchmarks live
	@.venv/bin/python -m benchmarks capture
	@.venv/bin/python -m benchmarks show
	@.venv/bin/python -m benchmarks pipeline

bench-peers: .venv/compiled .venv/bench.installed  ## speed and memory, beside Kroxylicious, Toxiproxy, HAProxy and pumps
	@tools/packages.sh haproxy=haproxy go=golang-go gcc=gcc mvn=maven javac=openjdk-17-jdk-headless perf=linux-perf
	@$(MAKE) .go/toxiproxy/server .jars/kroxylicious
	@.venv/bin/python -m benchmarks peers

bench-hostile: .venv/compiled .venv/bench.installed  ## latency of others, and memory, while one client attacks
	@.venv/bin/python -m benchmarks hostile

wire-check: .venv/test.installed  ## the tables against the schemas of one Kafka: make wire-check KAFKA=4.3.1
	@tools/packages.sh java=openjdk-17-jdk-headless mvn=maven
	@.venv/bin/python -m tools.wire_check $(KAFKA)

docs: .venv/test.installed  ## write the pages in docs/ that are made from tables
	@.venv/bin/python -m tools.protocol_doc
	@.venv/bin/python -m tools.rules_doc
	@.venv/bin/python -m tools.admin_api_doc
	@.venv/bin/python -m tools.pipeline_doc
	@.venv/bin/python -m tools.detectors_doc

pictures: .venv/test.installed  ## take the pictures in docs/images anew
	@tools/packages.sh tmux=tmux chromium=chromium java=openjdk-17-jdk-headless
	@.venv/bin/python -m tools.pictures

lock: .venv/lock.installed  ## the lock files anew, with the newest versions that pyproject.toml allows
	@tools/lock.sh --upgrade

sbom: .venv/sbom.installed  ## klamm.cdx.json: what the image has beside Python, as CycloneDX
	@tools/sbom.sh klamm.cdx.json

clean:  ## remove what the other targets made
	rm -rf .venv .jars .go .js .fuzz build dist *.egg-info *.cdx.json .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

test-packages:
	@tools/packages.sh $(TEST_PACKAGES)

.venv/compiled: .venv/test.installed setup.py pyproject.toml $(wildcard proxy/session/*.py proxy/session/*/*.py proxy/edge/*.py)
	@tools/compiled.sh $@

.venv/%.installed: pyproject.toml
	@tools/venv.sh $*

.jars/oracle-%: tests/oracle/%/pom.xml
	@tools/jars.sh $< $@

.jars/kroxylicious: benchmarks/kroxylicious/pom.xml
	@tools/jars.sh $< $@

.jars/%: tests/brokers/%/pom.xml
	@tools/jars.sh $< $@

.go/reactions: $(wildcard tests/clients/go/*)
	@cd $(<D) && CGO_ENABLED=0 go build -buildvcs=false -o $(CURDIR)/$@

.go/toxiproxy/server: Makefile
	@GOBIN=$(CURDIR)/$(@D) CGO_ENABLED=0 go install $(TOXIPROXY)

.go/compose-spec.json: Makefile
	@mkdir -p $(@D)
	@go mod download -json $(COMPOSE) | jq -r .Dir | xargs -I DIR install -m 644 DIR/schema/compose-spec.json $@

.js/package-lock.json: $(wildcard tests/clients/js/*.json)
	@mkdir -p $(@D)
	@cp $^ $(@D)
	@npm ci --prefix $(@D) --silent --ignore-scripts --no-audit --no-fund
	@touch $@

.PHONY: help demo test test-long fuzz simulate soak check format bench bench-peers bench-hostile wire-check docs pictures lock sbom clean test-packages test-compiled
