import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { serverDescription } from '../../mcp/identity.ts'
import { zip, type ZipFile } from './zip.ts'

// Builds dist/wcrm-<version>.mcpb: the stdio bridge as a bundle that desktop clients install from one file. It
// holds what mcp/bundle.ts imports, without types, and the packages that those files import.

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const ENTRY = 'mcp/bundle.ts'

const readText = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

type PackageJson = {
  version: string
  license: string
  type?: string
  exports?: { '.'?: { default?: string } }
}
const readPackage = (path: string): PackageJson => JSON.parse(readText(path)) as PackageJson

const IMPORT = /(\bfrom\s*|\bimport\s*\(?\s*)(['"])([^'"]+)\2/g

const listImports = (code: string): string[] => [...code.matchAll(IMPORT)].map((match) => match[3]!)

const toJsPath = (path: string): string => path.replace(/\.ts$/, '.js')

/** The source without its types, line by line. */
const compile = (path: string): string => stripTypeScriptTypes(readText(path), { mode: 'strip' })

/** Collects a file and all that it imports. `packages` gets the names of packages. */
const collect = (path: string, files: Map<string, string>, packages: Set<string>): void => {
  if (files.has(path)) return
  const code = path.endsWith('.ts') ? compile(path) : readText(path)
  files.set(path, code)
  for (const target of listImports(code)) {
    if (target.startsWith('.')) collect(relative(ROOT, resolve(ROOT, dirname(path), target)), files, packages)
    else if (!target.startsWith('node:')) packages.add(target)
  }
}

/** The files of a package that its main module needs, its description and its licence. */
const collectPackage = (name: string, files: Map<string, string>): void => {
  const folder = `node_modules/${name}`
  const main = readPackage(`${folder}/package.json`).exports?.['.']?.default
  if (main === undefined) throw new Error(`${name} does not name its main module`)
  const needed = new Set<string>()
  collect(join(folder, main), files, needed)
  if (needed.size > 0) throw new Error(`${name} needs ${[...needed].join(', ')}: bundle them too`)
  for (const file of ['package.json', 'LICENSE'])
    files.set(`${folder}/${file}`, readText(`${folder}/${file}`))
}

const setting = (name: string): string => `\${user_config.${name}}`

/** The description of the bundle (MCPB manifest 0.3): how it is started, and the form that a person fills in. */
export const createManifest = (): Record<string, unknown> => {
  const { version, license } = readPackage('package.json')
  const entry = toJsPath(ENTRY)
  return {
    manifest_version: '0.3',
    name: 'wcrm',
    display_name: 'wcrm',
    version,
    description: serverDescription,
    long_description:
      'Connects to a wcrm server of yours with an API key. Sends and other steps that cannot be undone wait for a ' +
      "person's approval unless the key's policy allows them.",
    author: { name: 'The authors of wcrm' },
    license,
    keywords: ['crm', 'inbox', 'messaging', 'support'],
    tools_generated: true,
    prompts_generated: true,
    server: {
      type: 'node',
      entry_point: entry,
      mcp_config: {
        command: 'node',
        args: [`\${__dirname}/${entry}`],
        env: {
          WCRM_URL: setting('url'),
          WCRM_API_KEY: setting('api_key'),
          WCRM_READONLY: setting('readonly'),
          WCRM_TOOLSETS: setting('toolsets'),
          WCRM_COMPACT: setting('compact'),
        },
      },
    },
    compatibility: { platforms: ['darwin', 'win32', 'linux'], runtimes: { node: '>=22.12.0' } },
    user_config: {
      url: {
        type: 'string',
        title: 'Server',
        description: 'The address of your wcrm server.',
        default: 'http://127.0.0.1:8787',
        required: true,
      },
      api_key: {
        type: 'string',
        title: 'API key',
        description:
          "An agent's key: wcrm admin keys create --agent --staff ID --scopes mcp:read,inbox:write",
        sensitive: true,
        required: true,
      },
      readonly: {
        type: 'boolean',
        title: 'Reads only',
        description: 'Leave out every tool that changes something.',
        default: false,
        required: false,
      },
      toolsets: {
        type: 'string',
        title: 'Toolsets',
        description: 'Such as contacts,conversations; empty for the default list, all for every tool.',
        default: '',
        required: false,
      },
      compact: {
        type: 'boolean',
        title: 'Compact',
        description: 'Three tools that find and run every operation, in place of a list of tools.',
        default: false,
        required: false,
      },
    },
  }
}

/** Returns the files of the bundle, the manifest first. */
export const listBundleFiles = (): ZipFile[] => {
  const sources = new Map<string, string>()
  const packages = new Set<string>()
  collect(ENTRY, sources, packages)
  const files = new Map<string, string>()
  for (const [path, code] of sources)
    files.set(
      toJsPath(path),
      code.replaceAll(IMPORT, (whole, before: string, quote: string, target: string) =>
        target.startsWith('.') ? `${before}${quote}${toJsPath(target)}${quote}` : whole,
      ),
    )
  for (const name of packages) collectPackage(name, files)
  const { version } = readPackage('package.json')
  files.set('package.json', JSON.stringify({ name: 'wcrm-mcpb', version, private: true, type: 'module' }))
  files.set('LICENSE', readText('LICENSE'))
  return [
    { name: 'manifest.json', data: Buffer.from(`${JSON.stringify(createManifest(), null, 2)}\n`) },
    ...[...files]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, text]) => ({ name, data: Buffer.from(text) })),
  ]
}

const main = (): void => {
  const bundle = zip(listBundleFiles())
  const folder = join(ROOT, 'dist')
  if (!existsSync(folder)) mkdirSync(folder)
  const path = join(folder, `wcrm-${readPackage('package.json').version}.mcpb`)
  writeFileSync(path, bundle)
  const sha256 = createHash('sha256').update(bundle).digest('hex')
  console.log(`${relative(process.cwd(), path)}  ${bundle.length} bytes  sha256 ${sha256}`)
}

if (import.meta.main) main()
