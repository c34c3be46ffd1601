// Builds the window's pages into `dist`, and runs their tests in a DOM without a browser.
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

export default defineConfig(({ mode }) => ({
  plugins: [svelte({ configFile: false })],
  build: { emptyOutDir: true },
  // Without it the tests would get Svelte's server build, which never mounts anything.
  resolve: mode === "test" ? { conditions: ["browser"] } : {},
  // Some tests read what the host says out of its sources.
  server: mode === "test" ? { fs: { allow: [".."] } } : {},
  test: {
    environment: "happy-dom",
    include: ["tests/**/*.test.ts"],
    // The contrast test reads the colours out of the style sheet.
    css: true,
    setupFiles: ["tests/setup.ts"],
  },
}));
