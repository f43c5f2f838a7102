/* `vite` serves the sources and forwards the API to a running assayd (ASSAY_URL); `vite build`
 * makes dist/. */
import { defineConfig } from "vite";

const server = process.env.ASSAY_URL ?? "http://127.0.0.1:8600";

export default defineConfig({
  esbuild: { jsx: "automatic", jsxImportSource: "preact", legalComments: "none" },
  build: {
    target: "es2022",
    modulePreload: false,      // one script: nothing to preload, and no helper code for it
    assetsInlineLimit: 0,      // no data: addresses, the content security policy allows none
    reportCompressedSize: false,
  },
  server: { proxy: { "/v1": server } },
});
