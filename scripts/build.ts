import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { SERVER_COMMANDS } from '../cli/groups.ts'
import { LOCAL_COMMANDS } from '../cli/main.ts'

/**
 * Builds what a package of npm contains: `client` (the package `wcrm`: its command line in a few files, together with
 * the libraries that it uses) or `server` (`@wcrm/server`: the sources as JavaScript). Run by `npm pack`.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const SERVER = join(ROOT, 'packages/server')

/** The dependencies of a package stay outside of its bundle. */
const readDependencies = (): string[] =>
  Object.keys(
    (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { dependencies: object }).dependencies,
  )

const buildClient = async (): Promise<void> => {
  const dist = join(ROOT, 'dist/client')
  rmSync(dist, { recursive: true, force: true })
  const commands = LOCAL_COMMANDS.filter((name) => !SERVER_COMMANDS.includes(name))
  await build({
    absWorkingDir: ROOT,
    entryPoints: ['main', 'complete', ...commands].map((name) => `cli/${name}.ts`),
    outdir: dist,
    // All in one folder: modules find their neighbours by `import.meta.url`.
    chunkNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    minify: true,
    keepNames: true,
    // The development tools of React are for development.
    external: [...readDependencies(), 'react-devtools-core'],
    define: { 'process.env.NODE_ENV': '"production"', 'process.env.DEV': '"false"' },
    // Libraries in CommonJS load modules of Node by `require`.
    banner: {
      js: "import{createRequire as __createRequire}from'node:module';const require=__createRequire(import.meta.url);",
    },
    legalComments: 'none',
    logLevel: 'warning',
  })
  for (const name of ['manifest.json', 'completions.json'])
    copyFileSync(join(ROOT, 'cli', name), join(dist, name))
  chmodSync(join(ROOT, 'bin/wcrm.js'), 0o755)
}

const buildServer = (): void => {
  const dist = join(SERVER, 'dist')
  rmSync(dist, { recursive: true, force: true })
  const { status } = spawnSync(
    process.execPath,
    [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.build.json', '--outDir', dist],
    { cwd: ROOT, stdio: 'inherit' },
  )
  if (status !== 0) throw new Error('tsc failed')
  for (const name of ['manifest.json', 'completions.json'])
    copyFileSync(join(ROOT, 'cli', name), join(dist, 'cli', name))
  copyFileSync(
    join(ROOT, 'storage/embedded/empty-database.zst'),
    join(dist, 'storage/embedded/empty-database.zst'),
  )
  copyFileSync(join(ROOT, 'LICENSE'), join(SERVER, 'LICENSE'))
}

const [part] = process.argv.slice(2)
if (part === 'client') await buildClient()
else if (part === 'server') buildServer()
else throw new Error('Usage: node scripts/build.ts client|server')
