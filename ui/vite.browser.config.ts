// Builds the pages for a browser: for tests against a real host, and over samples for pictures.
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

export default defineConfig({
  root: "tests/browser",
  plugins: [svelte({ configFile: false })],
  build: {
    emptyOutDir: true,
    outDir: "../../dist-browser",
    rolldownOptions: { input: ["tests/browser/index.html", "tests/browser/pictures.html"] },
  },
});
