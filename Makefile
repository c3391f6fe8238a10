# make demo   installs what is missing, builds, tunes a softmax and prints the table and the report's path
# make test   installs what is missing, builds and runs all tests
# make build  builds build/atunner, and beside it what `sanitize -- PROGRAM` puts in front of programs
# make bench-gpu   times rows, products and matrix products on the GPU of this machine (docs/benchmarks.md has the other commands)
# make format  clang-format over everything; make tidy  clang-tidy over everything but tests
# make asan    the tests under the address and undefined-behaviour sanitizers; make fuzz  every fuzz target for a minute
# make clean   removes build/
.PHONY: build demo test bench-gpu format tidy asan fuzz clean help
JOBS ?= $(shell nproc)
TARGET_GPU ?= $(shell if [ -e /dev/nvidia0 ]; then echo auto; else echo A100; fi)

build:  # the default
	@scripts/install_dependencies.sh
	cmake --preset release >/dev/null
	cmake --build build/release -j$(JOBS) --target atunner
	@strip -o build/atunner build/release/faces/atunner
	@strip -o build/libatunner_cuda.so build/release/faces/libatunner_cuda.so

demo: build
	build/atunner optimize --operator softmax --input-shape 8,1024,4096 --target-gpu $(TARGET_GPU) --budget 40

test:
	@scripts/install_dependencies.sh test
	cmake --preset dev >/dev/null
	cmake --build build/dev -j$(JOBS)
	ctest --preset dev -j$(JOBS)

bench-gpu: export ATUNNER_RUNTIME = $(CURDIR)/build/release/runtime/libatunner_runtime.so
bench-gpu: build
	cmake --build build/release -j$(JOBS) --target atunner_runtime
	python3 bench/rows.py --atunner build/atunner
	python3 bench/products.py --atunner build/atunner
	python3 bench/gemm.py --atunner build/atunner

format:
	git ls-files '*.h' '*.cpp' | xargs clang-format-19 -i

tidy:
	cmake --preset dev >/dev/null
	mkdir -p build/tidy && sed 's/-mmem[a-z]*-strategy=[^ ]*//g; s/-m[a-z]*-max=[0-9]*//g' build/dev/compile_commands.json > build/tidy/compile_commands.json  # g++'s alone
	git ls-files 'atunner/*.cpp' 'faces/*.cpp' 'runtime/*.cpp' | grep -v -e _test.cpp -e _fuzz.cpp | xargs clang-tidy-19 -p build/tidy --quiet

asan:
	cmake --preset asan >/dev/null
	cmake --build build/asan -j$(JOBS)
	ctest --preset asan -j$(JOBS)

fuzz:
	cmake --preset fuzz >/dev/null
	cmake --build build/fuzz -j$(JOBS) --target fuzzers
	ctest --preset fuzz -j$(JOBS)

clean:
	rm -rf build

help:
	@sed -n 's/^# make/make/p' Makefile
