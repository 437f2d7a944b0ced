import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, cpSync, globSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire, isBuiltin } from 'node:module'
import { join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type BuildOptions, type Metafile, type Plugin } from 'esbuild'
import { SERVER_COMMANDS } from '../cli/groups.ts'
import { LOCAL_COMMANDS } from '../cli/main.ts'
import { findImportProblems, readManifest, renderNotices } from './supply-chain.ts'

/**
 * Builds what a package of npm contains: `client` (the package `wcrm`: its command line in a few files, together with
 * the libraries that it uses), `server` (`@wcrm/server`: the sources as JavaScript) or `library` (`@wcrm/client`). Run
 * by `npm pack`. Fails where the package does not declare what its files import.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const SERVER = join(ROOT, 'packages/server')
const LIBRARY = join(ROOT, 'packages/client')

/** Modules that most commands load: `main.cjs` holds them, so that a command begins with one file. */
const USUAL_MODULES = [
  'program',
  'operation-command',
  'error',
  'command-line',
  'credentials',
  'complete',
].map((name) => join(ROOT, `cli/${name}.ts`))

/** The name of a module in the folder of the client, which has no others. */
const flatName = (path: string): string =>
  relative(join(ROOT, 'cli'), path).replace(/\.ts$/, '').split(sep).join('-')

/**
 * Leaves modules that few commands load out of `main.cjs`, which loads them from files of their own, and adds them
 * to `later`.
 */
const loadLater = (later: Set<string>): Plugin => ({
  name: 'load-later',
  setup: (esbuild) =>
    esbuild.onResolve({ filter: /^\..*\.ts$/ }, ({ kind, path, resolveDir }) => {
      const module = join(resolveDir, path)
      if (kind !== 'dynamic-import' || USUAL_MODULES.includes(module)) return undefined
      later.add(module)
      return { path: `./${flatName(module)}.js`, external: true }
    }),
})

/**
 * The source of a module that exports what is used of a module of Node; with `isWhole` all of it, as `import()` does,
 * except what Node loads when it is read.
 */
const renderBuiltin = (path: string, isWhole: boolean): string => {
  const loaded = createRequire(import.meta.url)(path) as object
  const names = Object.keys(loaded).filter(
    (name) =>
      /^(?!default$)[A-Za-z]\w*$/.test(name) &&
      !(isWhole && Object.getOwnPropertyDescriptor(loaded, name)?.get),
  )
  return [
    `const loaded = require(${JSON.stringify(path)})`,
    'const read = (name) => loaded[name]',
    ...names.map((name) => `const _${name} = /* @__PURE__ */ read('${name}')`),
    `export { loaded as default, ${names.map((name) => `_${name} as ${name}`).join(', ')} }`,
  ].join('\n')
}

/**
 * Loads modules of Node by `require`, and reads of them what is used: `import` reads everything that they export, and
 * so loads what Node itself loads when it is used, such as the HTTP client of `fetch` for `node:http`.
 */
const requireBuiltins: Plugin = {
  name: 'require-builtins',
  setup: (esbuild) => {
    esbuild.onResolve({ filter: /^node:/ }, ({ kind, path }) =>
      kind === 'require-call' ? undefined : { path, namespace: kind, sideEffects: false },
    )
    esbuild.onLoad({ filter: /^node:/, namespace: 'import-statement' }, ({ path }) => ({
      contents: renderBuiltin(path, false),
    }))
    esbuild.onLoad({ filter: /^node:/, namespace: 'dynamic-import' }, ({ path }) => ({
      contents: renderBuiltin(path, true),
    }))
  },
}

/**
 * Commander starts programs for commands that are programs of their own, and Ink connects to the development tools of
 * React. There are none of either, and the modules are large.
 */
const withoutPrograms: Plugin = {
  name: 'without-programs',
  setup: (esbuild) => {
    esbuild.onResolve({ filter: /^(?:node:child_process|\.\/devtools\.js)$/ }, ({ importer }) =>
      /[\\/](?:commander|ink)[\\/]/.test(importer)
        ? { path: 'none', namespace: 'without-programs' }
        : undefined,
    )
    esbuild.onLoad({ filter: /./, namespace: 'without-programs' }, () => ({ contents: 'export default {}' }))
  },
}

const clientOptions = {
  absWorkingDir: ROOT,
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node22',
  minify: true,
  keepNames: true,
  // The dependencies of a package stay outside of its bundle.
  external: Object.keys(readManifest('.').dependencies!),
  define: { 'process.env.NODE_ENV': '"production"' },
  legalComments: 'none',
  logLevel: 'warning',
  metafile: true,
  // The sources set it where it is not.
  logOverride: { 'assign-to-define': 'silent' },
} satisfies BuildOptions

/** Returns the folders of the packages of which the bundles contain code, such as `node_modules/zod`. */
const listBundled = (...metafiles: readonly Metafile[]): string[] => {
  const files = metafiles.flatMap(({ outputs }) =>
    Object.values(outputs).flatMap(({ inputs }) =>
      Object.entries(inputs).flatMap(([file, { bytesInOutput }]) => (bytesInOutput > 0 ? [file] : [])),
    ),
  )
  const folders = files.flatMap((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file) ?? [])
  return [...new Set(folders)].toSorted()
}

/** For Node, Deno, Bun, browsers and their bundlers alike. */
export const libraryOptions = {
  absWorkingDir: ROOT,
  entryPoints: ['client/index.ts'],
  bundle: true,
  format: 'esm',
  platform: 'neutral',
  mainFields: ['module', 'main'],
  target: 'es2022',
  minify: true,
  keepNames: true,
  legalComments: 'none',
  logLevel: 'warning',
} satisfies BuildOptions

const buildClient = async (): Promise<void> => {
  const dist = join(ROOT, 'dist/client')
  rmSync(dist, { recursive: true, force: true })
  const later = new Set(
    LOCAL_COMMANDS.filter((name) => !SERVER_COMMANDS.includes(name)).map((name) =>
      join(ROOT, `cli/${name}.ts`),
    ),
  )
  const main = await build({
    ...clientOptions,
    entryPoints: ['cli/main.ts'],
    outfile: join(dist, 'main.cjs'),
    format: 'cjs',
    plugins: [loadLater(later), withoutPrograms, requireBuiltins],
    define: { ...clientOptions.define, 'import.meta.url': '__moduleUrl' },
    banner: { js: "const __moduleUrl=require('node:url').pathToFileURL(__filename).href;" },
  })
  const others = await build({
    ...clientOptions,
    entryPoints: [...later].toSorted().map((path) => ({ in: path, out: flatName(path) })),
    outdir: dist,
    // All in one folder: modules find their neighbours by `import.meta.url`.
    chunkNames: '[name]-[hash]',
    splitting: true,
    plugins: [
      {
        name: 'one-main',
        setup: (esbuild) =>
          esbuild.onResolve({ filter: /\/main\.ts$/ }, () => ({ path: './main.cjs', external: true })),
      },
      withoutPrograms,
      requireBuiltins,
    ],
    // Libraries in CommonJS load modules of Node by `require`.
    banner: {
      js: "import{createRequire as __createRequire}from'node:module';const require=__createRequire(import.meta.url);",
    },
  })
  for (const name of ['manifest.json', 'completions.json'])
    copyFileSync(join(ROOT, 'cli', name), join(dist, name))
  const bundled = listBundled(main.metafile, others.metafile)
  writeFileSync(join(dist, 'THIRD-PARTY.txt'), renderNotices(bundled))
  writeFileSync(join(ROOT, 'dist/bundled.json'), JSON.stringify(bundled))
  chmodSync(join(ROOT, 'bin/wcrm.js'), 0o755)
}

/** Compiles with a configuration into a folder. The check has checked the types. */
const compile = (config: string, folder: string): void => {
  const { status } = spawnSync(
    process.execPath,
    [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', config, '--noCheck', '--outDir', folder],
    { cwd: ROOT, stdio: 'inherit' },
  )
  if (status !== 0) throw new Error('tsc failed')
}

const buildServer = (): void => {
  const dist = join(SERVER, 'dist')
  rmSync(dist, { recursive: true, force: true })
  compile('tsconfig.build.json', dist)
  for (const name of ['manifest.json', 'completions.json'])
    copyFileSync(join(ROOT, 'cli', name), join(dist, 'cli', name))
  cpSync(join(ROOT, 'server/http/docs/assets'), join(dist, 'server/http/docs/assets'), { recursive: true })
  // The guides at /docs.
  cpSync(join(ROOT, 'docs'), join(dist, 'docs'), {
    filter: (path) => !path.includes('decisions'),
    recursive: true,
  })
  copyFileSync(
    join(ROOT, 'storage/embedded/empty-database.zst'),
    join(dist, 'storage/embedded/empty-database.zst'),
  )
  copyFileSync(join(ROOT, 'LICENSE'), join(SERVER, 'LICENSE'))
}

/** The client library: one file without dependencies, and its types. */
const buildLibrary = async (): Promise<void> => {
  const dist = join(LIBRARY, 'dist')
  rmSync(dist, { recursive: true, force: true })
  const { metafile } = await build({ ...libraryOptions, metafile: true, outfile: join(dist, 'index.js') })
  const bundled = listBundled(metafile)
  writeFileSync(join(dist, 'THIRD-PARTY.txt'), renderNotices(bundled))
  mkdirSync(join(ROOT, 'dist'), { recursive: true })
  writeFileSync(join(ROOT, 'dist/bundled-library.json'), JSON.stringify(bundled))
  compile('tsconfig.library.json', dist)
  copyFileSync(join(ROOT, 'LICENSE'), join(LIBRARY, 'LICENSE'))
}

/** Returns the packages that files import, whatever these import of their own. */
const listImported = async (files: readonly string[]): Promise<string[]> => {
  const { metafile } = await build({
    absWorkingDir: ROOT,
    stdin: { contents: files.map((file) => `import './${file}'`).join('\n'), resolveDir: ROOT },
    bundle: true,
    packages: 'external',
    ignoreAnnotations: true,
    platform: 'node',
    format: 'esm',
    write: false,
    metafile: true,
    logLevel: 'error',
  })
  const names = Object.values(metafile.inputs)
    .flatMap(({ imports }) => imports.filter(({ external, path }) => external && !isBuiltin(path)))
    // Without helpers of the bundler, such as `<runtime>`.
    .flatMap(({ path }) => /^(?:@[^/]+\/)?\w[^/]*/.exec(path) ?? [])
  return [...new Set(names)].toSorted()
}

const PARTS = {
  client: { build: buildClient, folder: '.', files: '{bin,dist/client}/*.{js,cjs}' },
  server: { build: buildServer, folder: 'packages/server', files: 'packages/server/dist/**/*.js' },
  library: { build: buildLibrary, folder: 'packages/client', files: 'packages/client/dist/*.js' },
}

if (import.meta.main) {
  const part = PARTS[process.argv[2] as keyof typeof PARTS]
  if (!part) throw new Error(`Usage: node scripts/build.ts ${Object.keys(PARTS).join('|')}`)
  await part.build()
  const imported = await listImported(globSync(part.files, { cwd: ROOT }))
  const problems = findImportProblems(readManifest(part.folder), imported)
  if (problems.length > 0) throw new Error(problems.join('\n'))
}
