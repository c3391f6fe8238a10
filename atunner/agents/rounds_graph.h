// The flow of an optimisation in rounds, as a state graph:
//
//   operator_analysis ┐
//                     ├─► baseline ─► performance_analysis ─► propose ─► implement (one an idea)
//   hardware_analysis ┘                       ▲                              │
//                                             └───────── decide ◄── evaluate ┘
//                                                          └──► finish
#pragma once

#include "atunner/agents/workbench.h"
#include "atunner/workflow/graph.h"

namespace atunner::agents {

inline constexpr const char* kRoundsGraph = "rounds";

/// `bench` must outlive the graph; nullptr makes a graph that can be drawn and forked but not run.
workflow::Graph RoundsGraph(Workbench* bench);

}  // namespace atunner::agents
