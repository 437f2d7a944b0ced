import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import {
  type Component,
  findManifestProblems,
  findPartProblems,
  listParts,
  listVendored,
  listVendoredComponents,
  readManifest,
  renderLicenses,
  ROOT,
} from '../../scripts/supply-chain.ts'

/**
 * `npx node tools/release/run.ts` makes `dist/release`: both packages, their bills of materials (CycloneDX, by
 * `npm sbom`), the list of licences and SHA256SUMS. It publishes nothing. `--check` checks only what may be shipped, in
 * a second.
 */
const { values: flags } = parseArgs({ options: { check: { type: 'boolean', default: false } } })

type Bom = {
  serialNumber: string
  metadata: { timestamp: string; component: { name: string } }
  components: Component[]
  dependencies: { ref: string; dependsOn?: string[] }[]
}

const run = (program: string, ...args: string[]): string =>
  execFileSync(program, args, {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    stdio: ['ignore', 'pipe', 'ignore'],
  })

const readBom = (...words: string[]): Bom =>
  JSON.parse(run('npm', 'sbom', '--package-lock-only', '--sbom-format', 'cyclonedx', ...words)) as Bom

/** Keeps the components that pass, and what depends on what among them. */
const filterBom = (bom: Bom, keep: (component: Component) => boolean): Bom => {
  const components = bom.components.filter(keep)
  const refs = new Set(components.map((component) => component['bom-ref']))
  const dependencies = bom.dependencies
    .filter(({ ref }) => refs.has(ref) || !bom.components.some((component) => component['bom-ref'] === ref))
    .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter((other) => refs.has(other)) }))
  return { ...bom, components, dependencies }
}

/** Adds what was copied into the server, which npm does not know of. */
const addVendored = (bom: Bom): Bom => ({
  ...bom,
  components: [...bom.components, ...listVendoredComponents()],
})

/** npm names the bill after the folder, and gives it a random number and the time: the same commit makes the same. */
const writeBom = (folder: string, file: string, name: string, bom: Bom): void => {
  const timestamp = new Date(Number(run('git', 'log', '-1', '--format=%ct')) * 1000).toISOString()
  const metadata = { ...bom.metadata, timestamp, component: { ...bom.metadata.component, name } }
  const digest = createHash('sha256')
    .update(JSON.stringify([file, metadata, bom.components]))
    .digest('hex')
  const [a, b, c, d, e] = [0, 8, 12, 16, 20].map((at, i) => digest.slice(at, at + [8, 4, 4, 4, 12][i]!))
  const serialNumber = `urn:uuid:${a}-${b}-8${c!.slice(1)}-8${d!.slice(1)}-${e}`
  writeFileSync(join(folder, file), `${JSON.stringify({ ...bom, serialNumber, metadata }, null, 2)}\n`)
}

const release = (): void => {
  const folder = join(ROOT, 'dist/release')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  for (const words of [[], ['--workspace', '@wcrm/server'], ['--workspace', '@wcrm/client']])
    run('npm', 'pack', '--pack-destination', folder, ...words)
  const bundled = new Set(JSON.parse(readFileSync(join(ROOT, 'dist/bundled.json'), 'utf8')) as string[])
  const parts = listParts('all')
  const listNames = (paths: ReadonlySet<string>) =>
    new Set(parts.filter(({ path }) => paths.has(path)).map(({ name, version }) => `${name}@${version}`))
  const inBundle = listNames(bundled)
  const inLibrary = listNames(
    new Set(JSON.parse(readFileSync(join(ROOT, 'dist/bundled-library.json'), 'utf8')) as string[]),
  )
  const { version } = readManifest('.')
  const installed = new Set(
    readBom('--workspaces=false', '--omit=dev').components.map((part) => part['bom-ref']),
  )
  const client = filterBom(
    readBom(),
    (part) => installed.has(part['bom-ref']) || inBundle.has(`${part.name}@${part.version}`),
  )
  writeBom(folder, `wcrm-${version}.cdx.json`, 'wcrm', client)
  writeBom(
    folder,
    `wcrm-server-${version}.cdx.json`,
    '@wcrm/server',
    addVendored(readBom('--workspace', '@wcrm/server', '--omit=dev')),
  )
  writeBom(
    folder,
    `wcrm-client-${version}.cdx.json`,
    '@wcrm/client',
    filterBom(readBom(), (part) => inLibrary.has(`${part.name}@${part.version}`)),
  )
  writeBom(folder, `wcrm-${version}-development.cdx.json`, 'wcrm', addVendored(readBom()))
  writeFileSync(join(folder, 'LICENSES.md'), renderLicenses(bundled))
  const sums = readdirSync(folder)
    .toSorted()
    .map(
      (name) =>
        `${createHash('sha256')
          .update(readFileSync(join(folder, name)))
          .digest('hex')}  ${name}`,
    )
  writeFileSync(join(folder, 'SHA256SUMS'), `${sums.join('\n')}\n`)
  console.log(sums.join('\n'))
}

const problems = [
  ...findPartProblems([...listParts(), ...listVendored()]),
  ...['.', 'packages/server', 'packages/client'].flatMap((folder) =>
    findManifestProblems(readManifest(folder)),
  ),
]
for (const problem of problems) console.error(problem)
if (problems.length > 0) process.exitCode = 1
else if (flags.check) console.log(`${listParts().length + listVendored().length} packages may be shipped`)
else release()
