# What a person runs. `make demo` and `make test` are the two commands of the README; the parts stand on their own too.
SHELL := /usr/bin/env bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

NODE := packages/node
JAVA := packages/java
PYTHON := packages/python
KOTLIN := packages/kotlin
# Quiet, but for what the tests say.
QUIET_MVN := MAVEN_OPTS="-Dorg.slf4j.simpleLogger.defaultLogLevel=warn -Dorg.slf4j.simpleLogger.log.org.apache.maven.plugin.surefire=info" \
	mvn -B -ntp
MVN := $(QUIET_MVN) -f $(JAVA)/pom.xml
# The artifacts as their users get them.
MAVEN_REPOSITORY := target/maven-repository
DEPLOYED := build::file://$(CURDIR)/$(MAVEN_REPOSITORY)
JARS = $$(echo $(MAVEN_REPOSITORY)/systems/zlink/*/*/*.jar | tr ' ' ':')
RUN := tests/tools/run
CARGO_TEST := cargo test --workspace --exclude zlink-test-faults
# What a part compiles by itself. With another choice of packages cargo chooses other features for what they share and compiles
# that again, so `make test` makes one choice for all of its parts.
TOOLS = cargo build $(or $(ZLINK_CARGO_TOOLS),-p $(1))
NATIVE = cargo build --release $(or $(ZLINK_CARGO_PACKAGES),-p $(1))
# The model test and the bank test at full length; `cargo test` alone runs them short.
FULL := ZLINK_MODEL_SEEDS=20 ZLINK_MODEL_STEPS=5000 ZLINK_BANK_SECONDS=20

.PHONY: help
help: ## says what there is
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## (.*)/\1|\2/' | column -t -s '|'

# ---- what a machine must have -----------------------------------------------------------------------------------------

.PHONY: servers
servers:
	@tests/tools/install redis-server strace

target/.node-built: $(shell git ls-files -- '*.rs' '*.lua' '*.toml' Cargo.lock $(NODE) | grep -v '/test/')
	@echo "== Building the native library and the Node packages (the first time takes a few minutes)"
	@mkdir -p target
	cd $(NODE) && npm ci --no-audit --no-fund && npm run build
	@touch $@

.PHONY: build-node
build-node: target/.node-built ## builds the native library and the Node packages

.PHONY: jvm
jvm:
	@tests/tools/install javac:default-jdk-headless mvn:maven
	@tests/tools/jdk 17 >/dev/null

target/.java-built: $(shell git ls-files -- '*.rs' '*.lua' '*.toml' Cargo.lock $(JAVA) | grep -v -e '/tests/' -e '/examples/')
	@echo "== Building the native library for Java and the Maven artifacts (the first time takes a few minutes)"
	@mkdir -p target
	$(call NATIVE,zlink-store-jni)
	rm -rf $(filter-out %/zlink-store-kotlin,$(wildcard $(MAVEN_REPOSITORY)/systems/zlink/*))
	$(MVN) deploy -DskipTests -pl '!tests' -DaltDeploymentRepository=$(DEPLOYED)
	@touch $@

.PHONY: build-java
build-java: jvm target/.java-built ## builds the native library for Java and the Maven artifacts

# The environment of the tests, with the wheel in it as its users get it.
VENV := target/python/venv/bin

.PHONY: python
python:
	@tests/tools/install python3
	@python3 -c 'import ensurepip, venv' 2>/dev/null || tests/tools/install python3-venv-is-missing:python3-venv

$(VENV)/.ready: $(PYTHON)/requirements-dev.txt
	python3 -m venv target/python/venv
	$(VENV)/pip install -q --disable-pip-version-check -r $(PYTHON)/requirements-dev.txt
	@touch $@

target/.python-built: $(VENV)/.ready $(shell git ls-files -- '*.rs' '*.lua' '*.toml' Cargo.lock $(PYTHON) | grep -v -e '/tests/' -e '/examples/')
	@echo "== Building the native library for Python and the wheel (the first time takes a few minutes)"
	rm -rf target/python/wheels $(PYTHON)/build
	$(call TOOLS,zlink-store-bindgen)
	ZLINK_BINDGEN=target/debug/zlink-store-bindgen $(VENV)/pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w target/python/wheels ./$(PYTHON)
	$(VENV)/pip install -q --disable-pip-version-check --no-index --force-reinstall target/python/wheels/*.whl
	@touch $@

.PHONY: build-python
build-python: python target/.python-built ## builds the native library for Python and the wheel

# The programs in Kotlin that the tests of other rooms start are compiled here too.
KOTLIN_PROGRAMS := tests/interop/kotlin tests/bench/languages/kotlin
# The artifact, what it needs, and those programs: the class path that runs them.
KOTLIN_CLASSPATH := target/kotlin.classpath

target/.kotlin-built: $(shell git ls-files -- '*.rs' '*.lua' '*.toml' Cargo.lock $(KOTLIN) $(KOTLIN_PROGRAMS) | grep -v '/test/')
	@echo "== Building the native library for Kotlin and the Maven artifact (the first time takes a few minutes)"
	@mkdir -p target/kotlin/native/linux-x86-64
	$(call TOOLS,zlink-store-bindgen)
	$(call NATIVE,zlink-store-uniffi)
	$(KOTLIN)/scripts/generate target/release/libzlink_store_uniffi.so target/kotlin/generated
	cp target/release/libzlink_store_uniffi.so target/kotlin/native/linux-x86-64/
	rm -rf $(MAVEN_REPOSITORY)/systems/zlink/zlink-store-kotlin
	$(QUIET_MVN) -f $(KOTLIN)/pom.xml deploy -DskipTests -DaltDeploymentRepository=$(DEPLOYED)
	@$(QUIET_MVN) -q -f $(KOTLIN)/pom.xml dependency:build-classpath -DincludeScope=test -Dmdep.outputFile="$(CURDIR)/target/kotlin/libraries"
	@echo "$$(echo $(CURDIR)/$(MAVEN_REPOSITORY)/systems/zlink/zlink-store-kotlin/*/*.jar | tr ' ' ':'):$$(cat target/kotlin/libraries):$(CURDIR)/$(KOTLIN)/target/test-classes" > $(KOTLIN_CLASSPATH)
	@touch $@

.PHONY: build-kotlin
build-kotlin: jvm target/.kotlin-built ## builds the native library for Kotlin and the Maven artifact

target/.swift-built: $(shell git ls-files -- '*.rs' '*.lua' '*.toml' Cargo.lock packages/swift/scripts)
	@echo "== Generating the Swift sources (the first time builds the native library)"
	$(call TOOLS,zlink-store-bindgen)
	$(call NATIVE,zlink-store-uniffi)
	packages/swift/scripts/generate target/release/libzlink_store_uniffi.so
	@touch $@

.PHONY: build-swift
build-swift: target/.swift-built ## builds the native library for Swift and generates the package's sources

# ---- demo ----------------------------------------------------------------------------------------------------------------

.PHONY: demo
demo: build-node build-java ## three nodes of an actor framework at work on the embedded engine, in Node.js and in Java
	@echo "== Three nodes of an actor framework on the embedded engine, in Node.js"
	@node $(NODE)/examples/actors.mjs
	@echo "== Two workers take turns with a lock"
	@node $(NODE)/examples/turns.mjs
	@echo "== The three nodes again, in Java"
	@java -cp "$(JARS)" $(JAVA)/examples/Actors.java
	@echo "== The two workers again, in Java"
	@java -cp "$(JARS)" $(JAVA)/examples/Turns.java

.PHONY: demo-python
demo-python: build-python ## three workers share their work through one store, in Python
	@echo "== Three workers of a small service, in Python"
	@$(VENV)/python $(PYTHON)/examples/workers.py

.PHONY: demo-kotlin
demo-kotlin: build-kotlin ## first steps and the two workers, in Kotlin
	@for example in FirstSteps Turns; do \
		echo "== $$example, in Kotlin"; \
		java -cp "$$(cat $(KOTLIN_CLASSPATH))" $${example}Kt; \
	done

# ---- tests ---------------------------------------------------------------------------------------------------------------

.PHONY: test
test: export ZLINK_CARGO_TOOLS := --workspace --exclude zlink-test-faults --bins --tests
test: export ZLINK_CARGO_PACKAGES := -p zlink-store-node -p zlink-store-jni -p zlink-store-uniffi
test: ## installs and starts what the tests need, and runs all of them
	@rm -rf target/test-logs
	@# What a part would miss after twenty minutes is said at once.
	@$(MAKE) --no-print-directory servers jvm
	@tests/tools/jdk 25 >/dev/null
	@$(MAKE) --no-print-directory test-rust
	@$(MAKE) --no-print-directory test-servers
	@$(MAKE) --no-print-directory test-fuzz
	@$(MAKE) --no-print-directory test-node
	@$(MAKE) --no-print-directory test-java
	@$(MAKE) --no-print-directory test-python
	@$(MAKE) --no-print-directory test-kotlin
	@$(MAKE) --no-print-directory test-swift
	@$(MAKE) --no-print-directory test-interop
	@$(MAKE) --no-print-directory test-same
	@$(MAKE) --no-print-directory test-faults-short
	@tests/tools/summary

.PHONY: test-rust
test-rust: servers ## core and the scenarios, from Rust
	@echo "== Rust: unit tests, conformance scenarios, model test, bank test"
	@$(RUN) rust env $(FULL) $(CARGO_TEST)

.PHONY: test-servers
test-servers: servers ## the scenarios, as a user with the least rights, and the tests of the Redis engine on the oldest Redis that we support, and on Valkey
	@for server in redis-6.2 valkey-9; do \
		echo "== $$server: conformance scenarios, tests of the Redis engine"; \
		folder=$$(tests/tools/servers $$server); \
		PATH="$$folder:$$PATH" ZLINK_SERVER=$$server $(RUN) $$server-scenarios $(CARGO_TEST) -q --test conformance; \
		PATH="$$folder:$$PATH" $(RUN) $$server $(CARGO_TEST) -q --lib -- engine::redis::location engine::redis::blob \
			engine::redis::tests::scripts engine::redis::tests::greeting engine::redis::tests::acked engine::redis::project::tests::keys \
			engine::redis::project::tests::rights; \
	done

.PHONY: test-fuzz
test-fuzz: ## random URLs, cursors, records, replies, JSON and steps, 30 s each, beginning with the inputs that are kept
	@tests/tools/install c++:g++
	@$(RUN) fuzz tests/fuzz/run

.PHONY: test-node
test-node: servers build-node ## the Node packages and the scenarios, from Node
	@echo "== Building the starter of test servers"
	@$(call TOOLS,zlink-test-servers) -q
	@echo "== Node: the binding's own tests and the conformance scenarios"
	@$(RUN) bench node --test $(BENCH)/report.test.mjs
	@$(RUN) node env ZLINK_ENGINES=memory,file,redis,redis-client,cluster bash -c 'cd $(NODE) && npm test'

.PHONY: test-sanitizers
test-sanitizers: build-java ## the native library for Java under AddressSanitizer, which needs gcc (not part of `make test`)
	@$(RUN) sanitizers env JAVA_HOME="$$(tests/tools/jdk 17)" tests/sanitizers/run "$(JARS)" \
		$(MVN) test -Dtest=ConformanceTest -Dsurefire.failIfNoSpecifiedTests=false

# The other two of Node and Java on Sentinel and on a Cluster are part of test-node and of test-java on JDK 25.
.PHONY: test-topologies
test-topologies: servers build-node build-java ## the scenarios from Node on Sentinel and from Java on a Cluster, by TLS (not part of `make test`)
	@$(call TOOLS,zlink-test-servers) -q
	@$(RUN) node-sentinel env ZLINK_ENGINES=sentinel node --test tests/node/conformance.test.mjs
	@$(RUN) java-cluster env JAVA_HOME="$$(tests/tools/jdk 17)" $(MVN) test -Dtest=ConformanceTest -Dsurefire.failIfNoSpecifiedTests=false -Dzlink.engines=cluster

.PHONY: test-same
test-same: ## every language ran every scenario, on every engine (after the others)
	@node tests/conformance/compare.mjs target/conformance {rust,node,java,kotlin,python}-{memory,file,redis} node-redis-client \
		rust-{redis-tls-acl-resp3,sentinel-tls-acl,cluster-tls-acl-resp3,redis-6.2-acl,valkey-9-acl-resp3} node-cluster java-sentinel

.PHONY: test-java
test-java: servers build-java ## the Maven artifacts and the scenarios, from Java, on JDK 17 and on 25
	@tests/tools/jdk 25 >/dev/null
	@echo "== Building the starter of test servers"
	@$(call TOOLS,zlink-test-servers) -q
	@echo "== Java: the binding's own tests and the conformance scenarios, on JDK 17 and on 25"
	@$(RUN) java env JAVA_HOME="$$(tests/tools/jdk 17)" $(MVN) verify -Dzlink.jdk.newer="$$(tests/tools/jdk 25)"

.PHONY: test-python
test-python: servers build-python ## the Python package and the scenarios, from Python
	@echo "== Building the starter of test servers"
	@$(call TOOLS,zlink-test-servers) -q
	@echo "== Python: the package's own tests and the conformance scenarios"
	@$(RUN) python $(VENV)/python -m pytest -c $(PYTHON)/pyproject.toml --rootdir . $(PYTHON)/tests tests/python

.PHONY: test-kotlin
test-kotlin: servers build-kotlin ## the Kotlin artifact and the scenarios, from Kotlin
	@$(call TOOLS,zlink-test-servers) -q
	@echo "== Kotlin: the binding's own tests and the conformance scenarios"
	@$(RUN) kotlin env JAVA_HOME="$$(tests/tools/jdk 17)" $(QUIET_MVN) -f $(KOTLIN)/pom.xml test

.PHONY: test-swift
test-swift: build-swift ## what Swift's hand-written layer uses is there in what is generated (nothing is compiled)
	@$(RUN) swift node --test packages/swift/check.test.mjs

# What a process that obeys others needs in Java.
.PHONY: interop-java
interop-java: build-java
	@mvn -q -B -ntp -f tests/interop/java/pom.xml dependency:build-classpath -Dmdep.outputFile="$(CURDIR)/target/interop-java.libraries"
	@echo "$(JARS):$$(cat target/interop-java.libraries)" > target/interop-java.classpath

.PHONY: test-interop
test-interop: servers build-node interop-java build-python build-kotlin ## what one language wrote, another reads: on one Redis, and in one folder
	@$(call TOOLS,zlink-test-servers) -q
	@echo "== Interop: processes of two languages on the same data"
	@$(RUN) interop node --test tests/interop/interop.test.mjs tests/interop/waiters.test.mjs

# With the features of all packages, so that nothing is compiled again. Most of these tests wait: many go on side by side, and those of
# the file engine beside those of Redis.
CARGO_FAULTS := RUST_TEST_THREADS=12 cargo test --workspace --no-fail-fast
FAULTS_FILE := $(addprefix --test ,backup cancel checker full growth kill reopen second sync)
FAULTS_REDIS := --test redis
# What Java has in the long form only: what needs the most time, or is the same as for others.
LONG_ONLY := $(addprefix --skip java::,cut_at_random_bytes sentinels_promote_a_replica_that_lacks a_cluster_promotes_a_replica_that_lacks \
	restarted_with_much_to_load under_sentinels in_a_cluster a_patient_caller)

.PHONY: faults
faults: servers build-node build-java interop-java
	@rm -rf target/faults

.PHONY: test-faults
test-faults: faults ## crashes, kills, cuts and failovers under load, from the core, Node and Java; ends with a table
	@echo "== Faults: processes killed, servers restarted, links cut; the long form"
	@$(call survived,ZLINK_FAULTS=long,)

.PHONY: test-faults-short
test-faults-short: faults ## the same for a few minutes
	@echo "== Faults: processes killed, servers restarted, links cut; the short form"
	@$(call survived,ZLINK_FAULTS=short,-- $(LONG_ONLY))

# The table is printed whatever came of the tests; it fails too, if something is lost that must not be.
define survived
	cargo test -q --workspace --no-run $(FAULTS_FILE) $(FAULTS_REDIS); \
	$(RUN) faults-file env $(1) $(CARGO_FAULTS) $(FAULTS_FILE) > target/faults-file.log 2>&1 & file=$$!; \
	status=0; \
	$(RUN) faults-redis env $(1) $(CARGO_FAULTS) $(FAULTS_REDIS) $(2) || status=1; \
	wait $$file || status=1; \
	cat target/faults-file.log; \
	target/debug/survived || status=1; \
	exit $$status
endef

# ---- lints ---------------------------------------------------------------------------------------------------------------

.PHONY: lint
lint: ## formatting, clippy, TypeScript, Javadoc, Python
	@echo "== Lints"
	cargo fmt --all --check
	cargo fmt --check --manifest-path tests/fuzz/Cargo.toml
	cargo clippy --workspace --all-targets -- -D warnings
	cd $(NODE) && npm ci --no-audit --no-fund --silent && npm run --silent lint
	@$(MAKE) --no-print-directory lint-javadoc
	@$(MAKE) --no-print-directory lint-python

.PHONY: lint-python
lint-python: python $(VENV)/.ready ## Python: form and plain mistakes; the types are checked by a test
	$(VENV)/ruff check -q --config $(PYTHON)/pyproject.toml $(PYTHON) tests/python tests/bench tests/interop
	$(VENV)/ruff format -q --check --config $(PYTHON)/pyproject.toml $(PYTHON) tests/python tests/bench tests/interop

# Java's own warnings are errors of its build.
JAVA_MODULE = sed -n 's/.*module \([a-z.]*\) {/\1/p'
.PHONY: lint-javadoc
lint-javadoc: jvm ## the documentation of the Java packages is complete, and its references are right
	@javadoc -quiet -Xdoclint:all -Werror -d target/javadoc \
		$$(for sources in $(JAVA)/*/src/main/java; do echo --module-source-path $$($(JAVA_MODULE) $$sources/module-info.java)=$$sources; done) \
		--module $$($(JAVA_MODULE) $(JAVA)/*/src/main/java/module-info.java | paste -sd,)

# ---- benchmarks --------------------------------------------------------------------------------------------------------

BENCH := tests/bench
BENCH_NODE := $(BENCH)/node
BENCH_PARTS := node java core
# What was measured is printed even if a row of it failed.
reported = rm -f target/bench/$(1).json; status=0; $(BENCH)/pinned $(2) || status=1; node $(BENCH)/report.mjs $(1) || status=1; exit $$status

.PHONY: bench
bench: ## every line of the goals (tests/bench/goals.json), all sides in turn on one Redis; a table, target/bench/report.json, plots
	@rm -rf target/bench
	@status=0; \
	for part in $(BENCH_PARTS); do $(MAKE) --no-print-directory bench-$$part || status=1; done; \
	node $(BENCH)/report.mjs all || status=1; \
	exit $$status

.PHONY: bench-publish
bench-publish: ## puts what `make bench` has measured into docs/performance.md, and the plots into the README
	@node $(BENCH)/report.mjs publish

$(BENCH_NODE)/node_modules/.package-lock.json: $(BENCH_NODE)/package-lock.json
	cd $(BENCH_NODE) && npm ci --no-audit --no-fund
	@touch $@

.PHONY: bench-node
bench-node: servers build-node $(BENCH_NODE)/node_modules/.package-lock.json ## Node against node-redis, valkey-glide and others, in one run on one Redis; ROWS="read scan" for some rows only
	@$(call TOOLS,zlink-test-servers) -q
	@$(call reported,node,node $(BENCH_NODE)/bench.mjs $(ROWS))

.PHONY: bench-java
bench-java: servers build-java ## Java against Lettuce, valkey-glide and Redisson, in one run on one Redis; ROWS="read lock" for some rows only
	@$(call TOOLS,zlink-test-servers) -q
	@mvn -q -B -ntp -f $(BENCH)/java/pom.xml dependency:build-classpath -Dmdep.outputFile="$(CURDIR)/target/bench-java.libraries"
	@echo "$(JARS):$$(cat target/bench-java.libraries)" > target/bench-java.classpath
	@rm -rf target/bench-java && javac -d target/bench-java -cp "$$(cat target/bench-java.classpath)" $(BENCH)/java/*.java
	@$(call reported,java,java -Xms1g -Xmx1g -cp "target/bench-java:$$(cat target/bench-java.classpath)" Bench $(ROWS))

.PHONY: bench-core
bench-core: servers ## core against redis-rs, in one run on one Redis; ROWS="read scan" for some rows only
	@cargo build -q --profile fast -p zlink-bench --bin core
	@$(call reported,core,target/fast/core $(ROWS))

.PHONY: bench-instructions
bench-instructions: servers ## the instructions of core's hot paths, by callgrind, against limits; WORKS="memory/read" for some only, UPDATE=1 notes them
	@tests/tools/install valgrind
	@cargo build -q --profile fast -p zlink-bench --bin instructions
	@node $(BENCH)/instructions.mjs target/fast/instructions $(if $(UPDATE),--update) $(WORKS)

.PHONY: bench-languages
bench-languages: servers build-node build-java build-python build-kotlin ## Node, Java, Python and Kotlin beside each other, in one run; WANTED="node kotlin" for some only
	@$(call TOOLS,zlink-test-servers) -q
	@echo "$(JARS)" > target/bench-languages-java.classpath
	@node tests/bench/languages/bench.mjs $(WANTED)

.PHONY: bench-python
bench-python: servers build-python ## Python against redis-py, in one run on one Redis
	@$(call TOOLS,zlink-test-servers) -q
	@$(VENV)/pip install -q --disable-pip-version-check redis
	@$(VENV)/python tests/bench/python/bench.py

.PHONY: clean
clean: ## removes what was built
	rm -rf target $(PYTHON)/build $(PYTHON)/src/*.egg-info $(JAVA)/target $(JAVA)/*/target $(KOTLIN)/target $(NODE)/node_modules $(NODE)/*/dist $(BENCH_NODE)/node_modules
