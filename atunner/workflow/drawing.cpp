#include "atunner/workflow/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace atunner::workflow {
namespace {

enum class EdgeKind : uint8_t { kPlain, kRouted, kJoined };

/// An edge between numbers of boxes: nodes, then the start and the end.
struct Edge {
  int from = 0;
  int to = 0;
  EdgeKind kind = EdgeKind::kPlain;
};

struct Picture {
  std::vector<std::string> labels;
  std::vector<Edge> edges;
  int start = 0;
  int end = 0;
};

std::string Label(const Node& node, const Visits& visits) {
  const auto found = visits.find(node.name);
  const std::string inner = node.inner ? " [" + node.inner->graph->name() + "]" : "";
  return node.name + inner + (found == visits.end() ? "" : fmt::format(" ×{}", found->second));
}

Picture PictureOf(const Graph& graph, const Visits& visits) {
  Picture picture;
  for (const Node& node : graph.nodes()) picture.labels.push_back(Label(node, visits));
  picture.start = static_cast<int>(picture.labels.size());
  picture.end = picture.start + 1;
  picture.labels.insert(picture.labels.end(), {"start", "end"});
  const auto box = [&](int node) { return node == Graph::kEndNode ? picture.end : node; };
  for (const int entry : graph.entries()) picture.edges.push_back({picture.start, box(entry)});
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    const int from = static_cast<int>(i);
    for (const int to : node.edges) picture.edges.push_back({from, box(to)});
    for (const int to : node.routes) picture.edges.push_back({from, box(to), EdgeKind::kRouted});
    for (const int join : node.joins)
      picture.edges.push_back(
          {from, box(graph.joins()[static_cast<size_t>(join)].target), EdgeKind::kJoined});
  }
  return picture;
}

/// Edges that lead back to a box on the way to them, found by a search in depth.
void FindBackEdges(const Picture& picture, int at, std::vector<int>& mark, std::set<size_t>& back) {
  mark[static_cast<size_t>(at)] = 1;
  for (size_t i = 0; i < picture.edges.size(); ++i) {
    const Edge& edge = picture.edges[i];
    if (edge.from != at) continue;
    const int seen = mark[static_cast<size_t>(edge.to)];
    if (seen == 1) back.insert(i);
    if (seen == 0) FindBackEdges(picture, edge.to, mark, back);
  }
  mark[static_cast<size_t>(at)] = 2;
}

std::vector<int> LayersOf(const Picture& picture) {
  std::vector<int> mark(picture.labels.size(), 0);
  std::set<size_t> back;
  FindBackEdges(picture, picture.start, mark, back);
  std::vector<int> layers(picture.labels.size(), 0);
  for (size_t round = 0; round < picture.labels.size(); ++round) {
    for (size_t i = 0; i < picture.edges.size(); ++i) {
      const Edge& edge = picture.edges[i];
      if (back.contains(i)) continue;
      int& layer = layers[static_cast<size_t>(edge.to)];
      layer = std::max(layer, layers[static_cast<size_t>(edge.from)] + 1);
    }
  }
  return layers;
}

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else if (c == '&')
      escaped += "&amp;";
    else if (c == '"')
      escaped += "&quot;";
    else
      escaped += c;
  }
  return escaped;
}

constexpr int kWidth = 180;
constexpr int kHeight = 36;
constexpr int kGapX = 30;
constexpr int kGapY = 44;

struct Place {
  int x = 0;  ///< of the box's centre
  int y = 0;  ///< of its upper edge
};

std::vector<Place> PlacesOf(const Picture& picture, int& width, int& height) {
  const std::vector<int> layers = LayersOf(picture);
  std::vector<int> counts(picture.labels.size() + 1, 0);
  for (const int layer : layers) ++counts[static_cast<size_t>(layer)];
  const int most = *std::ranges::max_element(counts);
  width = most * (kWidth + kGapX) + 2 * kGapX;
  height = (*std::ranges::max_element(layers) + 1) * (kHeight + kGapY) + kGapY;
  std::vector<int> used(counts.size(), 0);
  std::vector<Place> places(picture.labels.size());
  for (size_t i = 0; i < places.size(); ++i) {
    const auto layer = static_cast<size_t>(layers[i]);
    const int row = counts[layer] * (kWidth + kGapX);
    places[i].x = width / 2 - row / 2 + used[layer]++ * (kWidth + kGapX) + (kWidth + kGapX) / 2;
    places[i].y = kGapY / 2 + layers[i] * (kHeight + kGapY);
  }
  return places;
}

std::string Line(const Place& from, const Place& to, EdgeKind kind, int width) {
  const char* dashes = kind == EdgeKind::kRouted ? " stroke-dasharray='5 4'" : "";
  if (to.y > from.y)
    return fmt::format("<path class='e'{} d='M{} {} L{} {}'/>\n", dashes, from.x, from.y + kHeight,
                       to.x, to.y);
  const int side = width - kGapX / 2;  // back, along the right-hand side
  return fmt::format("<path class='e'{} d='M{} {} C{} {} {} {} {} {}'/>\n", dashes,
                     from.x + kWidth / 2, from.y + kHeight / 2, side, from.y, side, to.y,
                     to.x + kWidth / 2, to.y + kHeight / 2);
}

bool HasRun(const Graph& graph, size_t box, const Visits& visits) {
  return box < graph.nodes().size() && visits.contains(graph.nodes()[box].name);
}

}  // namespace

std::string MermaidOf(const Graph& graph, const Visits& visits) {
  const Picture picture = PictureOf(graph, visits);
  std::string text = "flowchart TD\n";
  for (size_t i = 0; i < picture.labels.size(); ++i) {
    const bool round = static_cast<int>(i) >= picture.start;
    text += fmt::format("  n{}{}\"{}\"{}\n", i, round ? "([" : "[", Escaped(picture.labels[i]),
                        round ? "])" : "]");
  }
  static constexpr const char* kArrows[] = {"-->", "-.->", "==>"};
  for (const Edge& edge : picture.edges)
    text += fmt::format("  n{} {} n{}\n", edge.from, kArrows[static_cast<size_t>(edge.kind)],
                        edge.to);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (HasRun(graph, i, visits)) text += fmt::format("  style n{} fill:#cfe8cf\n", i);
  }
  return text;
}

std::string SvgOf(const Graph& graph, const Visits& visits) {
  const Picture picture = PictureOf(graph, visits);
  int width = 0;
  int height = 0;
  const std::vector<Place> places = PlacesOf(picture, width, height);
  std::string text = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {0} {1}' width='{0}' height='{1}' "
      "font-family='sans-serif' font-size='13'>\n"
      "<title>{2}</title>\n<style>.e{{fill:none;stroke:#555;marker-end:url(#a)}}</style>\n"
      "<defs><marker id='a' viewBox='0 0 8 8' refX='8' refY='4' markerWidth='7' "
      "markerHeight='7' orient='auto'><path d='M0 0 L8 4 L0 8 z' fill='#555'/></marker></defs>\n",
      width, height, Escaped(graph.name()));
  for (const Edge& edge : picture.edges)
    text += Line(places[static_cast<size_t>(edge.from)], places[static_cast<size_t>(edge.to)],
                 edge.kind, width);
  for (size_t i = 0; i < places.size(); ++i) {
    const bool round = static_cast<int>(i) >= picture.start;
    text += fmt::format(
        "<rect x='{}' y='{}' width='{}' height='{}' rx='{}' fill='{}' stroke='#333'/>\n"
        "<text x='{}' y='{}' text-anchor='middle'>{}</text>\n",
        places[i].x - kWidth / 2, places[i].y, kWidth, kHeight, round ? kHeight / 2 : 4,
        HasRun(graph, i, visits) ? "#cfe8cf" : "#ffffff", places[i].x, places[i].y + 23,
        Escaped(picture.labels[i]));
  }
  return text + "</svg>\n";
}

}  // namespace atunner::workflow
