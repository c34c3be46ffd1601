// Builds the pages for a browser, for tests against a real host.
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

export default defineConfig({
  root: "tests/browser",
  plugins: [svelte({ configFile: false })],
  build: { emptyOutDir: true, outDir: "../../dist-browser" },
});
