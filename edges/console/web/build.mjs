// Builds dist/: index.html, app.js, app.css. What is in dist/ is committed, so that building the
// program needs no Node; dev/fresh.sh checks that it is what these sources give.
//
//   node build.mjs            dist/
//   node build.mjs --watch    dist/, again with every change
//   node build.mjs --test     dev/out/, the unit tests

import { build, context } from "esbuild";
import { copyFileSync, mkdirSync, readFileSync, readdirSync } from "node:fs";

process.chdir(import.meta.dirname);

const shared = {
  bundle: true,
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
};

if (process.argv.includes("--test")) {
  const tests = readdirSync("src").filter((name) => name.endsWith(".test.ts"));
  await build({
    ...shared,
    entryPoints: tests.map((name) => `src/${name}`),
    outdir: "dev/out",
    outExtension: { ".js": ".test.mjs" },
    platform: "node",
    format: "esm",
  });
  process.exit(0);
}

// The licences of what is bundled ask to be with every copy.
const licences = ["preact", "@preact/signals", "@preact/signals-core", "uplot"]
  .map((name) => `${name}\n\n${readFileSync(`node_modules/${name}/LICENSE`, "utf8").trim()}`)
  .join("\n\n");

const page = {
  ...shared,
  entryPoints: { app: "src/main.tsx" },
  outdir: "dist",
  format: "iife",
  minify: true,
  charset: "utf8",
  legalComments: "none",
  footer: { js: `/*\n${licences}\n*/` },
};

mkdirSync("dist", { recursive: true });
copyFileSync("src/index.html", "dist/index.html");
if (process.argv.includes("--watch")) {
  await (await context(page)).watch();
} else {
  await build(page);
}
