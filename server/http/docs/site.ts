import type { Operation } from '../../../catalog/index.ts'
import { getGroupOf } from '../openapi.ts'
import { createStaticDocument, type StaticDocument } from '../static-document.ts'
import { createAssets } from './assets.ts'
import { createGuides } from './guides.ts'
import { SITE_POLICY } from './layout.ts'
import { renderLlmsFullText, renderLlmsText } from './llms.ts'
import { createReferenceDocument, renderGroup } from './operations.ts'
import { renderGuide, renderHome, renderReference } from './pages.ts'
import { createPostmanCollection } from './postman.ts'
import { listSearchEntries } from './search.ts'

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
