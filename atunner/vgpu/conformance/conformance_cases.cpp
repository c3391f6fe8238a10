#include "atunner/vgpu/conformance/conformance_cases.h"

#include <bit>
#include <cmath>
#include <map>
#include <sstream>

#include "atunner/model/value/dtype.h"

namespace atunner::vgpu {
namespace {

std::vector<std::string> Split(const std::string& line, const std::string& separator) {
  std::vector<std::string> parts;
  size_t at = 0;
  while (true) {
    const size_t next = line.find(separator, at);
    std::string part = line.substr(at, next == std::string::npos ? next : next - at);
    const size_t first = part.find_first_not_of(' ');
    const size_t last = part.find_last_not_of(' ');
    parts.push_back(first == std::string::npos ? "" : part.substr(first, last - first + 1));
    if (next == std::string::npos) return parts;
    at = next + separator.size();
  }
}

std::vector<std::string> Words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

int BitsOfType(const std::string& type) {
  if (type == "pred") return 1;
  if (type.ends_with("x2")) return type.starts_with("e") ? 16 : 32;
  const size_t digit = type.find_first_of("0123456789");
  return digit == std::string::npos ? 0 : std::stoi(type.substr(digit));
}
bool IsFloat(const std::string& type) {
  return type == "f16" || type == "bf16" || type == "f32" || type == "f64";
}

/// Class of the register that holds a type: 8-bit values lie in wider ones.
std::string RegisterType(const std::string& type) {
  const int bits = BitsOfType(type);
  return bits == 1 ? ".pred" : bits == 16 ? ".b16" : bits == 64 ? ".b64" : ".b32";
}

void Replace(std::string& text, const std::string& what, const std::string& with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
}

constexpr const char* kInputs[] = {"$a", "$b", "$c", "$f"};
constexpr const char* kOutputs[] = {"$d", "$e"};

std::string Kernel(const ConformanceForm& form, size_t index) {
  std::string body = form.ptx;
  std::string declare;
  std::string load;
  std::string store;
  for (size_t i = 0; i < form.inputs.size(); ++i) {
    const std::string name = "%in" + std::to_string(i);
    const std::string type = RegisterType(form.inputs[i]);
    declare += "  .reg " + type + " " + name + ";\n";
    load += "  ld.global" + type + " " + name + ", [%from+" + std::to_string(8 * i) + "];\n";
    Replace(body, kInputs[i], name);
  }
  for (size_t i = 0; i < form.outputs.size(); ++i) {
    const std::string name = "%out" + std::to_string(i);
    const std::string type = RegisterType(form.outputs[i]);
    declare += "  .reg " + type + " " + name + ";\n";
    const std::string at = "[%to+" + std::to_string(8 * i) + "]";
    if (type == ".pred")
      store += "  selp.u32 %n, 1, 0, " + name + ";\n  st.global.u32 " + at + ", %n;\n";
    else
      store += "  st.global" + type + " " + at + ", " + name + ";\n";
    Replace(body, kOutputs[i], name);
  }
  const std::string in_bytes = std::to_string(8 * form.inputs.size());
  const std::string out_bytes = std::to_string(8 * form.outputs.size());
  return ".visible .entry form" + std::to_string(index) +
         "(.param .u64 in, .param .u64 out, .param .u32 count)\n{\n  .reg .pred %past;\n  .reg "
         ".b32 %n, %i, %block;\n"
         "  .reg .b64 %from, %to;\n" +
         declare +
         "  ld.param.u64 %from, [in];\n  ld.param.u64 %to, [out];\n  ld.param.u32 %n, [count];\n"
         "  mov.u32 %i, %tid.x;\n  mov.u32 %block, %ctaid.x;\n  mad.lo.u32 %i, %block, 32, %i;\n"
         "  setp.ge.u32 %past, %i, %n;\n  @%past bra END;\n  mad.wide.u32 %from, %i, " +
         in_bytes + ", %from;\n  mad.wide.u32 %to, %i, " + out_bytes + ", %to;\n" + load + "  " +
         body + "\n" + store + "END:\n  ret;\n}\n";
}

double Value(const std::string& type, uint64_t bits) {
  if (type == "f16") return HalfToFloat(static_cast<uint16_t>(bits));
  if (type == "bf16") return BFloat16ToFloat(static_cast<uint16_t>(bits));
  if (type == "f64") return std::bit_cast<double>(bits);
  return std::bit_cast<float>(static_cast<uint32_t>(bits));
}

bool Agrees(const ConformanceForm& form, const ConformanceCase& one, size_t output, uint64_t got) {
  const std::string& type = form.outputs[output];
  const int bits = std::max(32, BitsOfType(type)) == 32 && BitsOfType(type) == 16
                       ? 16
                       : std::max(32, BitsOfType(type));
  if (bits < 64) got &= (uint64_t{1} << bits) - 1;
  if (one.any_nan[output]) return std::isnan(Value(type, got));
  if (got == one.outputs[output]) return true;
  if ((form.relative == 0 && form.absolute == 0) || !IsFloat(type)) return false;
  const double expected = Value(type, one.outputs[output]);
  const double error = std::fabs(Value(type, got) - expected);
  return error <= form.absolute + form.relative * std::fabs(expected);
}

std::string Describe(const ConformanceForm& form, const ConformanceCase& one, size_t output,
                     uint64_t got) {
  std::ostringstream text;
  text << form.ptx << std::hex << "  inputs";
  for (uint64_t v : one.inputs) text << " " << v;
  text << ": output " << output << " is " << got << ", expected ";
  if (one.any_nan[output])
    text << "a NaN";
  else
    text << one.outputs[output];
  return text.str();
}

Status ReadForm(const std::string& line, const std::string& where,
                std::vector<ConformanceForm>& forms) {
  const auto parts = Split(line.substr(5), " | ");
  if (parts.size() != 5) return Invalid("a form has five parts", where);
  ConformanceForm form;
  form.ptx = parts[0];
  form.outputs = Words(parts[1]);
  form.inputs = Words(parts[2]);
  if (form.outputs.empty() || form.outputs.size() > std::size(kOutputs) ||
      form.inputs.size() > std::size(kInputs))
    return Invalid("a form has one or two outputs and at most four inputs", where);
  if (parts[3].starts_with("rel=")) form.relative = std::stod(parts[3].substr(4));
  if (parts[3].starts_with("abs=")) form.absolute = std::stod(parts[3].substr(4));
  form.arch = std::stoi(parts[4]);
  forms.push_back(std::move(form));
  return {};
}

Status ReadCase(const std::string& line, const std::string& where, ConformanceForm& form) {
  const auto sides = Split(line, " = ");
  if (sides.size() != 2) return Invalid("a case is 'inputs = outputs'", where);
  ConformanceCase one;
  for (const std::string& word : Words(sides[0]))
    one.inputs.push_back(std::stoull(word, nullptr, 16));
  for (const std::string& word : Words(sides[1])) {
    one.any_nan.push_back(word == "nan");
    one.outputs.push_back(word == "nan" ? 0 : std::stoull(word, nullptr, 16));
  }
  if (one.inputs.size() != form.inputs.size() || one.outputs.size() != form.outputs.size())
    return Invalid("a case has as many values as its form", where);
  form.cases.push_back(std::move(one));
  return {};
}

}  // namespace

Result<std::vector<ConformanceForm>> ReadConformance(const std::string& text) {
  std::vector<ConformanceForm> forms;
  std::istringstream in(text);
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    const std::string where = "line " + std::to_string(++number);
    if (line.empty() || line[0] == '#') continue;
    if (line.starts_with("form ")) {
      ATUNNER_RETURN_IF_ERROR(ReadForm(line, where, forms));
    } else if (forms.empty()) {
      return Invalid("a case before any form", where);
    } else {
      ATUNNER_RETURN_IF_ERROR(ReadCase(line, where, forms.back()));
    }
  }
  return forms;
}

std::string ConformanceModule(const std::vector<ConformanceForm>& forms, int arch) {
  std::string text = ".version 8.3\n.target sm_" + std::to_string(arch) + "\n.address_size 64\n";
  for (size_t i = 0; i < forms.size(); ++i) text += Kernel(forms[i], i);
  return text;
}

std::vector<std::string> CheckConformance(const std::vector<ConformanceForm>& forms,
                                          int device_arch, const ConformanceRunner& run,
                                          size_t& cases_run, size_t limit) {
  std::map<int, std::vector<ConformanceForm>> by_arch;
  for (const ConformanceForm& form : forms) {
    if (form.arch <= device_arch) by_arch[form.arch].push_back(form);
  }
  std::vector<std::string> wrong;
  for (const auto& [arch, list] : by_arch) {
    const std::string ptx = ConformanceModule(list, arch);
    for (size_t f = 0; f < list.size(); ++f) {
      const ConformanceForm& form = list[f];
      std::vector<uint64_t> inputs;
      for (const ConformanceCase& one : form.cases)
        inputs.insert(inputs.end(), one.inputs.begin(), one.inputs.end());
      const auto outputs = run(ptx, "form" + std::to_string(f), inputs, form.cases.size(),
                               form.outputs.size());
      if (!outputs) {
        wrong.push_back(form.ptx + ": " + outputs.error().ToString());
        if (wrong.size() >= limit) return wrong;
        continue;
      }
      for (size_t i = 0; i < form.cases.size(); ++i) {
        for (size_t o = 0; o < form.outputs.size(); ++o) {
          const uint64_t got = (*outputs)[i * form.outputs.size() + o];
          if (!Agrees(form, form.cases[i], o, got))
            wrong.push_back(Describe(form, form.cases[i], o, got));
          if (wrong.size() >= limit) return wrong;
        }
        ++cases_run;
      }
    }
  }
  return wrong;
}

}  // namespace atunner::vgpu
