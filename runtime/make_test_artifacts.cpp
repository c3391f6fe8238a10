// make_test_artifacts FOLDER: the test artifacts, for tests in other languages.
#include <cstdio>

#include "runtime/test_artifacts.h"

int main(int argc, char** argv) {
  using namespace atunner;
  if (argc != 2) return 2;
  const Path folder = argv[1];
  for (const auto& [name, artifact] : {std::pair("scale", loader::ScaleArtifact()),
                                       {"two_step", loader::TwoStepArtifact()},
                                       {"by_table", loader::TableArtifact()}}) {
    if (const Status saved = loader::SaveTestArtifact(folder / name, artifact); !saved) {
      std::fprintf(stderr, "%s\n", saved.error().ToString().c_str());
      return 1;
    }
  }
  return 0;
}
