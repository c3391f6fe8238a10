import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// `npm run dev` asks a server that was started with `atunner serve`.
export default defineConfig({
  plugins: [react()],
  base: "./",
  build: { assetsInlineLimit: 0, chunkSizeWarningLimit: 900 },
  server: { proxy: { "/api": process.env.ATUNNER_SERVER ?? "http://127.0.0.1:8080" } },
  test: { include: ["src/**/*.test.ts"] },
});
