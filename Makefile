# make build     builds build/atunner and the library that `sanitize -- PROGRAM` loads into programs
# make demo      builds, tunes a softmax and prints the table and the path of the report
# make serve-demo builds, starts a server with its dashboard, and shows a kernel that it has tuned;
#                LISTEN=127.0.0.1:8080 is its address, Ctrl-C ends it
# make test      builds and runs all tests but the long ones
# make test-all  runs the long ones, too
# make check     format, text, spelling, structure, layers, headers, clang-tidy of what changed
#                since main; TIDY=all looks at all sources
# make format    formats C++ and device code with clang-format
# make bless     writes the golden files of generated sources anew; review the difference
# make asan      tests under the address and undefined-behaviour sanitizers
# make tsan      tests with threads (tune, judge, jobs) under the thread sanitizer
# make fuzz      every fuzz target for a minute; FUZZ_SECONDS=5 for five seconds
# make coverage  tests with gcov, then the share of lines that they reach, by room
# make web       builds the dashboard (needs npm); make build then puts it into the program
# make web-test  its tests; Chromium drives its pages of a server
# make package   .deb, wheel and tarball in build/packages, and a test of each
# make chart-test renders the Helm chart and validates its objects (needs npm, and python3)
# make mcp-conformance  installs the conformance suite of the Model Context Protocol (needs npm),
#                builds build/dev/faces/atunner and runs it; later `make test` runs it, too
# make bench-gpu times rows, products and matrix products on the GPU of this machine
#                (docs/benchmarks.md has the other commands)
# make clean     removes build/
# Every target installs the packages that it needs and that are missing. JOBS=N limits parallelism.
# DEV_FLAGS holds further flags of cmake for make test.
.PHONY: build demo serve-demo package test test-all check check-format check-text check-spelling \
        check-structure check-layers check-headers tidy format bless asan tsan fuzz coverage web \
        web-test chart-test mcp-conformance bench-gpu clean help
JOBS ?= $(shell nproc)
TARGET_GPU ?= $(shell if [ -e /dev/nvidia0 ]; then echo auto; else echo A100; fi)
TIDY ?= changed
FUZZ_SECONDS ?= 60

build:  # the default
	@scripts/install_dependencies.sh
	cmake --preset release >/dev/null
	cmake --build build/release -j$(JOBS) --target atunner
	@strip -o build/atunner build/release/faces/atunner
	@strip -o build/libatunner_cuda.so build/release/faces/libatunner_cuda.so
	@strip -o build/libatunner_record.so build/release/faces/libatunner_record.so
	@strip -o build/libatunner_nccl.so build/release/faces/libatunner_nccl.so
	@strip -o build/libatunner_memory.so build/release/faces/libatunner_memory.so

demo: build
	build/atunner optimize --operator softmax --input-shape 8,1024,4096 \
	  --target-gpu $(TARGET_GPU) --budget 40

serve-demo: web
	@$(MAKE) --no-print-directory build
	@scripts/serve_demo.sh build/atunner

package: web
	@$(MAKE) --no-print-directory build
	cmake --build build/release -j$(JOBS) --target atunner_runtime atunner_runtime_static
	@scripts/install_dependencies.sh package
	@rm -rf build/packages
	scripts/package.py build/release build/packages
	scripts/package_test.py build/packages

# Runs ctest with the given arguments and then prints the ten longest tests and ctest's last line.
run-tests = mkdir -p build/$(1) && rm -f build/$(1)/tests.xml; \
	ctest --test-dir build/$(1) -j$(JOBS) --output-on-failure \
	  --output-junit $(CURDIR)/build/$(1)/tests.xml $(2); \
	status=$$?; scripts/longest_tests.py build/$(1)/tests.xml; exit $$status

# The command line of the development build alone.
dev-program:
	@scripts/install_dependencies.sh test
	cmake --preset dev $(DEV_FLAGS) >/dev/null
	cmake --build build/dev -j$(JOBS) --target atunner
.PHONY: dev-program

# Where npm and Chromium are, the dashboard is built and driven, too.
dev-build:
	@scripts/install_dependencies.sh test
	@if command -v npm >/dev/null && [ -x "$${CHROMIUM:-/usr/bin/chromium}" ]; then \
	  $(MAKE) --no-print-directory web || echo "note: no dashboard; its tests are skipped"; fi
	cmake --preset dev $(DEV_FLAGS) >/dev/null
	cmake --build build/dev -j$(JOBS)
.PHONY: dev-build

test: dev-build
	@$(call run-tests,dev,-LE long)

test-all:
	@scripts/install_dependencies.sh web
	@scripts/install_dependencies.sh browser
	@$(MAKE) --no-print-directory dev-build
	@$(call run-tests,dev,)

WEB := faces/serve/web
web: $(WEB)/dist/index.html

$(WEB)/node_modules/.package-lock.json: $(WEB)/package-lock.json
	@scripts/install_dependencies.sh web
	cd $(WEB) && npm ci --no-audit --no-fund --loglevel=error && touch node_modules/.package-lock.json

$(WEB)/dist/index.html: $(WEB)/node_modules/.package-lock.json $(WEB)/index.html \
    $(wildcard $(addprefix $(WEB)/,*.ts public/* src/* src/*/*))
	cd $(WEB) && npm run build

web-test: web
	@scripts/install_dependencies.sh browser
	cd $(WEB) && npm test
	@$(MAKE) --no-print-directory dev-program
	cd $(WEB) && npm run test:page -- --atunner $(CURDIR)/build/dev/faces/atunner

chart-test:
	@scripts/install_dependencies.sh web
	cd deploy/helm/test && npm ci --no-audit --no-fund --ignore-scripts && npm test

mcp-conformance: dev-program
	@scripts/install_dependencies.sh web
	cd tests/mcp/conformance && npm ci --no-audit --no-fund
	tests/mcp/conformance.py --atunner build/dev/faces/atunner

check:  # -k: all findings of all parts
	@scripts/install_dependencies.sh check
	@$(MAKE) --no-print-directory -k check-format check-text check-spelling check-structure \
	  check-layers check-headers tidy
	@echo "make check: no findings"

# Lists of entries (.def), data of tests and users' examples keep their own layout.
FORMATTED = git ls-files '*.h' '*.hpp' '*.cpp' 'kernels/*.cu' 'kernels/*.cuh'

check-format:
	$(FORMATTED) | xargs -P$(JOBS) -n 64 clang-format-19 --dry-run -Werror

format:
	@scripts/install_dependencies.sh check
	$(FORMATTED) | xargs -P$(JOBS) -n 64 clang-format-19 -i

check-text:
	scripts/check_text.py

check-spelling:
	git ls-files | grep -v -f scripts/spelling_files.txt | xargs codespell \
	  --ignore-words scripts/spelling_words.txt --ignore-regex '\w*[a-z][A-Z]\w*'

check-structure:
	@mkdir -p build
	scripts/structure.py --check >build/structure.txt

check-layers:
	cmake -DROOT=$(CURDIR) -P tests/check_layers.cmake

check-headers:
	cmake --preset dev >/dev/null
	cmake --build build/dev -j$(JOBS) --target header_check

tidy:
	cmake --preset dev >/dev/null
	scripts/tidy.py -j$(JOBS) $(if $(filter all,$(TIDY)),--all)

bless: dev-configured
	cmake --build build/dev -j$(JOBS) --target codegen_test trace_test
	ATUNNER_WRITE_GOLDEN=1 build/dev/atunner/codegen/codegen_test --gtest_filter='*SourcesOf*'
	ATUNNER_WRITE_GOLDEN=1 build/dev/atunner/trace/trace_test --gtest_filter='*Golden*'
	git --no-pager diff --stat -- '*.golden' '*.report.json'

dev-configured:
	@scripts/install_dependencies.sh test
	cmake --preset dev >/dev/null
.PHONY: dev-configured

asan:
	@scripts/install_dependencies.sh test
	cmake --preset asan >/dev/null
	cmake --build build/asan -j$(JOBS)
	@$(call run-tests,asan,-LE long)

tsan:
	@scripts/install_dependencies.sh test
	cmake --preset tsan >/dev/null
	cmake --build build/tsan -j$(JOBS) --target threaded_tests
	@$(call run-tests,tsan,-R '^(tune|judge|judge_vgpu|jobs)_test$$')

fuzz:
	@scripts/install_dependencies.sh fuzz
	cmake --preset fuzz -DATUNNER_FUZZ_SECONDS=$(FUZZ_SECONDS) >/dev/null
	cmake --build build/fuzz -j$(JOBS) --target fuzzers
	ctest --preset fuzz -j$(JOBS)

coverage:
	@scripts/install_dependencies.sh coverage
	cmake --preset coverage >/dev/null
	cmake --build build/coverage -j$(JOBS)
	find build/coverage -name '*.gcda' -delete
	ctest --test-dir build/coverage -j$(JOBS) -LE long; scripts/coverage.py build/coverage

bench-gpu: export ATUNNER_RUNTIME = $(CURDIR)/build/release/runtime/libatunner_runtime.so
bench-gpu: build
	cmake --build build/release -j$(JOBS) --target atunner_runtime
	python3 bench/rows.py --atunner build/atunner
	python3 bench/products.py --atunner build/atunner
	python3 bench/gemm.py --atunner build/atunner

clean:
	rm -rf build

help:
	@sed -n '/^\.PHONY/q; s/^# //p' Makefile
