// Command-line arguments as CUDA's sample programs read them: -name or --name=value.
#pragma once
#include <strings.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#ifndef EXIT_WAIVED
#define EXIT_WAIVED 2
#endif
#define STRCASECMP strcasecmp
#define STRNCASECMP strncasecmp
#define STRCPY(to, bytes, from) strcpy(to, from)
#define FOPEN(file, name, mode) (file = fopen(name, mode))
#define FOPEN_FAIL(result) (result == NULL)
#define SSCANF sscanf
#define SPRINTF sprintf

inline int stringRemoveDelimiter(char delimiter, const char* text) {
  int start = 0;
  while (text[start] == delimiter) ++start;
  return start >= static_cast<int>(strlen(text)) - 1 ? 0 : start;
}

/// The text behind "name" of the first such argument: "=8" of --n=8; NULL if there is none.
inline const char* findCmdLineArgument(int argc, const char** argv, const char* name) {
  const size_t length = strlen(name);
  for (int i = 1; i < argc; ++i) {
    const char* text = argv[i] + stringRemoveDelimiter('-', argv[i]);
    const bool whole = text[length < strlen(text) ? length : strlen(text)] == '\0' ||
                       text[length < strlen(text) ? length : strlen(text)] == '=';
    if (strncasecmp(text, name, length) == 0 && whole) return text + length;
  }
  return NULL;
}

inline bool checkCmdLineFlag(int argc, const char** argv, const char* name) {
  return findCmdLineArgument(argc, argv, name) != NULL;
}

inline int getCmdLineArgumentInt(int argc, const char** argv, const char* name) {
  const char* value = findCmdLineArgument(argc, argv, name);
  return value == NULL || *value == '\0' ? 0 : atoi(value + 1);
}

inline float getCmdLineArgumentFloat(int argc, const char** argv, const char* name) {
  const char* value = findCmdLineArgument(argc, argv, name);
  return value == NULL || *value == '\0' ? 0.f : static_cast<float>(atof(value + 1));
}

template <class T>
inline bool getCmdLineArgumentValue(int argc, const char** argv, const char* name, T* value) {
  const char* text = findCmdLineArgument(argc, argv, name);
  if (text != NULL && *text != '\0') *value = static_cast<T>(atoi(text + 1));
  return text != NULL;
}

inline bool getCmdLineArgumentString(int argc, const char** argv, const char* name, char** value) {
  const char* text = findCmdLineArgument(argc, argv, name);
  *value = text == NULL || *text == '\0' ? NULL : const_cast<char*>(text + 1);
  return *value != NULL;
}

/// The file here, in ./data, or beside the program; NULL if it is in none of them.
inline char* sdkFindFilePath(const char* name, const char* program) {
  std::string beside = program == NULL ? "" : program;
  beside.resize(beside.rfind('/') == std::string::npos ? 0 : beside.rfind('/') + 1);
  for (const std::string& folder :
       {std::string(), std::string("data/"), std::string("../data/"), beside, beside + "data/"}) {
    if (FILE* file = fopen((folder + name).c_str(), "rb")) {
      fclose(file);
      return strdup((folder + name).c_str());
    }
  }
  return NULL;
}
