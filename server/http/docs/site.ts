import type { Operation } from '../../../catalog/index.ts'
import { getGroupOf } from '../openapi.ts'
import { createStaticDocument, type StaticDocument } from '../static-document.ts'
import { createGuides, type Guide } from './guides.ts'
import { SITE_POLICY } from './layout.ts'
import { createReferenceDocument, renderGroup } from './operations.ts'
import { renderGuide, renderHome, renderReference } from './pages.ts'
import { createPostmanCollection } from './postman.ts'
import { listSearchEntries } from './search.ts'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { tagDescriptions } from '../openapi-tags.ts'

type SiteSource = { operations: readonly Operation[]; config: { publicUrl: string } }

const common = { 'Cache-Control': 'no-cache', 'X-Content-Type-Options': 'nosniff' }

const html = (body: string): StaticDocument =>
  createStaticDocument(body, {
    ...common,
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': SITE_POLICY,
    'Referrer-Policy': 'no-referrer',
  })

const text = (type: 'text/markdown' | 'text/plain', body: string): StaticDocument =>
  createStaticDocument(body, { ...common, 'Content-Type': `${type}; charset=utf-8` })

const json = (value: unknown): StaticDocument =>
  createStaticDocument(JSON.stringify(value), { ...common, 'Content-Type': 'application/json' })

/** Returns what makes the document of a path of the site; undefined: there is none. */
const createMaker = ({ operations, config }: SiteSource): ((path: string) => StaticDocument | undefined) => {
  const { publicUrl } = config
  const readGuides = createGuides()
  const documents: Readonly<Record<string, () => StaticDocument>> = {
    '/docs': () => html(renderHome(readGuides(), operations, publicUrl)),
    '/docs/reference': () => html(renderReference(operations)),
    '/docs/openapi.json': () => json(createReferenceDocument(operations, publicUrl)),
    '/docs/search.json': () => json(listSearchEntries(readGuides(), operations)),
    '/docs/postman.json': () => json(createPostmanCollection(operations, publicUrl)),
    '/llms.txt': () => text('text/plain', renderLlmsText(readGuides(), operations, publicUrl)),
    '/llms-full.txt': () => text('text/plain', renderLlmsFullText(readGuides(), operations)),
  }
  return (path) => {
    if (Object.hasOwn(documents, path)) return documents[path]!()
    const group = /^\/docs\/reference\/([\w-]+)\.md$/.exec(path)?.[1]
    if (group !== undefined)
      return operations.some((op) => getGroupOf(op) === group)
        ? text('text/markdown', renderGroup(group, operations))
        : undefined
    const [, name, isMarkdown] = /^\/docs\/([\w-]+)(\.md)?$/.exec(path) ?? []
    const guide = name === undefined ? undefined : readGuides().find((each) => each.name === name)
    if (!guide) return undefined
    return isMarkdown ? text('text/markdown', guide.markdown) : html(renderGuide(guide, readGuides()))
  }
}

const ASSETS_PATH = '/docs/assets/'

/**
 * Returns what serves `/docs` and below, and `/llms.txt`; undefined for any other path. Each is made once, when asked
 * for.
 */
export const createSite = (
  source: SiteSource,
): ((path: string, request: Request) => Promise<Response | undefined>) => {
  const make = createMaker(source)
  const made = new Map<string, StaticDocument>()
  const findAsset = createAssets()
  return async (path, request) => {
    if (!/^\/(?:docs(?:\/|$)|llms)/.test(path)) return undefined
    // Pages name their files relative to /docs, so that they also work behind a proxy that adds a path.
    if (path === '/docs/') return new Response(null, { status: 308, headers: { Location: '../docs' } })
    if (path.startsWith(ASSETS_PATH))
      return await (await findAsset(path.slice(ASSETS_PATH.length)))?.serve(request)
    const document = made.get(path) ?? make(path)
    if (document) made.set(path, document)
    return await document?.serve(request)
  }
}

const TYPES = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
  txt: 'text/plain; charset=utf-8',
} as const

/** The files below `/docs/assets/`. Of those that are stored compressed, the name is without `.gz`. */
const files: Readonly<Record<string, { type: string; isCompressed?: true }>> = {
  'docs.css': { type: TYPES.css },
  'docs.js': { type: TYPES.js },
  'reference.js': { type: TYPES.js },
  'icon.svg': { type: TYPES.svg },
  'scalar.js': { type: TYPES.js, isCompressed: true },
  'minisearch.js': { type: TYPES.js, isCompressed: true },
  'LICENSES.txt': { type: TYPES.txt },
}

const unzip = promisify(gunzip)

const readAsset = async (name: string): Promise<StaticDocument | undefined> => {
  if (!Object.hasOwn(files, name)) return undefined
  const { type, isCompressed } = files[name]!
  const stored = await readFile(new URL(`assets/${name}${isCompressed ? '.gz' : ''}`, import.meta.url))
  const headers = { 'Content-Type': type, 'Cache-Control': 'public, max-age=3600' }
  return isCompressed
    ? createStaticDocument(await unzip(stored), headers, stored)
    : createStaticDocument(stored, headers)
}

/** Returns what finds the files below `/docs/assets/` by their name. Each is read once, when asked for. */
const createAssets = (): ((name: string) => Promise<StaticDocument | undefined>) => {
  const documents = new Map<string, Promise<StaticDocument | undefined>>()
  return (name) => {
    if (!Object.hasOwn(files, name)) return Promise.resolve(undefined)
    const document = documents.get(name) ?? readAsset(name)
    documents.set(name, document)
    return document
  }
}

const intro = `# wcrm

> Messaging and CRM for one workspace: contacts, conversations, messages, templates, broadcasts, webhooks and
> reports. Every operation is a REST route, \`POST /v1/ops/<name>\`, an MCP tool and a command.
> Changes take \`dry_run\`; errors are
> \`application/problem+json\` with a stable \`code\`.
`

/** Returns `/llms.txt`: what the server's documents are, with links to them as Markdown. */
const renderLlmsText = (
  guides: readonly Guide[],
  operations: readonly Operation[],
  publicUrl: string,
): string => {
  const groups = [...Map.groupBy(guides, ({ group }) => group)].map(
    ([group, members]) =>
      `## ${group}\n\n${members
        .map(({ name, title, about }) => `- [${title}](${publicUrl}/docs/${name}.md): ${about}`)
        .join('\n')}`,
  )
  const reference = [...Map.groupBy(operations, getGroupOf).keys()].map(
    (group) => `- [${group}](${publicUrl}/docs/reference/${group}.md): ${tagDescriptions[group] ?? ''}`,
  )
  return `${intro}
${groups.join('\n\n')}

## API reference

${reference.join('\n')}

## Optional

- [OpenAPI of the REST routes](${publicUrl}/openapi.json)
- [OpenAPI of /v1/ops](${publicUrl}/openapi-ops.json)
- [Postman collection](${publicUrl}/docs/postman.json)
- [All of this in one file](${publicUrl}/llms-full.txt)
`
}

/** Returns `/llms-full.txt`: all guides and the reference, one after the other. */
const renderLlmsFullText = (guides: readonly Guide[], operations: readonly Operation[]): string =>
  [
    intro,
    ...guides.map(({ markdown }) => markdown),
    ...[...Map.groupBy(operations, getGroupOf).keys()].map((group) => renderGroup(group, operations)),
  ].join('\n\n')
