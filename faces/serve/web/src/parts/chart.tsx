import { BarChart, HeatmapChart, LineChart, ParallelChart, ScatterChart } from "echarts/charts";
import {
  GridComponent,
  ParallelComponent,
  TooltipComponent,
  VisualMapComponent,
} from "echarts/components";
import * as echarts from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";
import { useEffect, useRef } from "react";

echarts.use([
  BarChart,
  HeatmapChart,
  LineChart,
  ParallelChart,
  ScatterChart,
  GridComponent,
  ParallelComponent,
  TooltipComponent,
  VisualMapComponent,
  CanvasRenderer,
]);

export function color(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Colours of times from the fastest to the slowest. */
export const fastToSlow = ["#0f766e", "#5eb5a4", "#e6d9a8", "#e09f54", "#b4412f"];

/** Tooltips are drawn in the canvas, since the page's CSP allows no inline style. */
export function tooltip() {
  return {
    renderMode: "richText",
    backgroundColor: color("--panel"),
    borderColor: color("--line"),
    textStyle: { color: color("--text") },
  };
}

interface Props {
  make: () => echarts.EChartsCoreOption;
  height: number;
  /** Least width; narrower places scroll. */
  width?: number;
  label: string;
  onClick?: (data: unknown) => void;
}

/** An ECharts canvas. */
export function Chart({ make, height, width, label, onClick }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const latest = useRef({ make, onClick });
  latest.current = { make, onClick };
  const drawn = useRef<echarts.ECharts | null>(null);
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const chart = echarts.init(element);
    drawn.current = chart;
    chart.on("click", (event) => latest.current.onClick?.(event.data));
    const again = () => chart.setOption(latest.current.make(), true);
    const resized = new ResizeObserver(() => chart.resize());
    resized.observe(element);
    const dark = window.matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", again);
    window.addEventListener("themechange", again);
    return () => {
      resized.disconnect();
      dark.removeEventListener("change", again);
      window.removeEventListener("themechange", again);
      chart.dispose();
      drawn.current = null;
    };
  }, []);
  useEffect(() => drawn.current?.setOption(make(), true), [make]);
  return (
    <div
      ref={place}
      className="chart"
      style={{ height, minWidth: width }}
      role="img"
      aria-label={label}
    />
  );
}
