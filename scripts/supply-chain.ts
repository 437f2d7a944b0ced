import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { vendored } from './vendored.ts'

/** What the packages of npm consist of, and what is demanded of it before a release. */

export const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Licences under which a part may be shipped. */
const ALLOWED = [
  '0BSD',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'BlueOak-1.0.0',
  'ISC',
  'MIT',
  'Unlicense',
]

type LockEntry = {
  version?: string
  license?: string
  dev?: boolean
  devOptional?: boolean
  link?: boolean
  hasInstallScript?: boolean
}
/** A package that users install or that is bundled; `path` is its folder, such as `node_modules/zod`. */
export type Part = {
  path: string
  name: string
  version: string
  license: string | undefined
  script: boolean
}
export type Manifest = {
  name: string
  version: string
  license?: string
  files?: string[]
  repository?: { url?: string; directory?: string }
  publishConfig?: { access?: string; provenance?: boolean }
  dependencies?: Record<string, string>
}

export const readManifest = (folder: string): Manifest =>
  JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8')) as Manifest

/** Returns the packages of the lock file: those that run, or all of them. */
export const listParts = (which: 'runtime' | 'all' = 'runtime'): Part[] => {
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, LockEntry>
  }
  return Object.entries(lock.packages)
    .filter(([path, entry]) => path.includes('node_modules/') && !entry.link)
    .filter(([, entry]) => which === 'all' || !entry.dev)
    .map(([path, { version = '', license, hasInstallScript }]) => ({
      path,
      name: path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length),
      version,
      license,
      script: hasInstallScript === true,
    }))
}

/** The packages of which a file is in the server's package, copied. */
export const listVendored = (): Part[] =>
  vendored.map(({ name, version, license, output }) => ({
    path: `server/http/docs/assets/${output}`,
    name,
    version,
    license,
    script: false,
  }))

/** Whether a licence expression of SPDX offers one that is allowed. */
export const isAllowed = (license: string): boolean =>
  license
    .replace(/^\((.*)\)$/, '$1')
    .split(' OR ')
    .some((choice) => choice.split(' AND ').every((one) => ALLOWED.includes(one)))

/** Returns one line for each package that may not be shipped as it is. */
export const findPartProblems = (parts: readonly Part[]): string[] =>
  parts.flatMap(({ name, version, license, script }) => [
    ...(license === undefined ? [`${name}@${version} names no licence`] : []),
    ...(license !== undefined && !isAllowed(license)
      ? [`${name}@${version} is under ${license}: allow it in scripts/supply-chain.ts, or replace it`]
      : []),
    ...(script
      ? [`${name}@${version} runs a script when it is installed: the product must run without it`]
      : []),
  ])

/** Returns one line for each field that a package lacks to be published with provenance. */
export const findManifestProblems = ({
  name,
  license,
  files,
  repository,
  publishConfig,
  dependencies,
}: Manifest) => [
  ...(license === 'Apache-2.0' ? [] : [`${name}: license`]),
  ...(files?.includes('LICENSE') ? [] : [`${name}: files names no LICENSE`]),
  ...(repository?.url?.startsWith('git+https://') ? [] : [`${name}: repository.url`]),
  ...(publishConfig?.provenance === true && publishConfig.access === 'public'
    ? []
    : [`${name}: publishConfig`]),
  ...Object.entries(dependencies ?? {})
    .filter(([, version]) => !/^\d/.test(version))
    .map(([dependency]) => `${name}: ${dependency} is not pinned`),
]

/** Returns one line for each package that is imported and no dependency, or a dependency and not imported. */
export const findImportProblems = (
  { name, dependencies = {} }: Manifest,
  imported: readonly string[],
): string[] => [
  ...imported
    .filter((other) => !(other in dependencies))
    .map((other) => `${name}: imports ${other}, which is no dependency`),
  ...Object.keys(dependencies)
    .filter((other) => !imported.includes(other))
    .map((other) => `${name}: does not import its dependency ${other}`),
]

/** The text of a package's licence; undefined where it brings none. */
const readLicense = (path: string): string | undefined => {
  const folder = join(ROOT, path)
  const file = existsSync(folder) && readdirSync(folder).find((name) => /^licen[cs]e/i.test(name))
  return file ? readFileSync(join(folder, file), 'utf8').trim() : undefined
}

/** Renders the notices that the licences of bundled packages demand. `paths`: such as `node_modules/zod`. */
export const renderNotices = (paths: readonly string[]): string => {
  const parts = listParts('all')
  const chapters = paths.toSorted().map((path) => {
    const part = parts.find((other) => other.path === path)
    if (part?.license === undefined || !isAllowed(part.license))
      throw new Error(`${path} is bundled, and its licence is ${part?.license ?? 'unknown'}`)
    const text = readLicense(path) ?? `Licence: ${part.license}. The package brings no text of it.`
    return `${part.name} ${part.version} (${part.license})\n\n${text}\n`
  })
  return `This package contains code of these packages.\n\n${chapters.join(`\n${'-'.repeat(80)}\n\n`)}`
}

/**
 * Renders the list of what a release ships: what npm installs, what the client was bundled with, and what was copied
 * into the server. `bundled`: paths such as `node_modules/zod`.
 */
export const renderLicenses = (bundled: ReadonlySet<string>): string => {
  const runtime = new Set(listParts().map(({ path }) => path))
  const shipped = listParts('all').filter(({ path }) => runtime.has(path) || bundled.has(path))
  const toRow = ({ name, version, license }: Part, how: string): string =>
    `| ${name} | ${version} | ${license} | ${how} |`
  const rows = [
    ...shipped.map((part) => toRow(part, bundled.has(part.path) ? 'in the client' : 'installed by npm')),
    ...listVendored().map((part) => toRow(part, 'in the server, copied')),
  ]
  return [
    '| package | version | licence | how it is shipped |',
    '|---|---|---|---|',
    ...rows.toSorted(),
    '',
  ].join('\n')
}

export type Component = {
  'bom-ref': string
  type: string
  name: string
  version: string
  purl: string
  hashes?: { alg: string; content: string }[]
  licenses?: { license: { id: string } }[]
}

/** The copied packages as components of a bill of materials (CycloneDX), as `npm sbom` writes those it knows. */
export const listVendoredComponents = (): Component[] =>
  vendored.map(({ name, version, license, integrity }) => ({
    'bom-ref': `${name}@${version}`,
    type: 'library',
    name,
    version,
    purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
    hashes: [
      {
        alg: 'SHA-512',
        content: Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex'),
      },
    ],
    licenses: [{ license: { id: license } }],
  }))
