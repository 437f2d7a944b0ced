import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { before, describe, it } from 'node:test'
import vm from 'node:vm'
import { gunzipSync } from 'node:zlib'
import { catalog, listRoutes } from '../../catalog/index.ts'
import { createSite } from '../../server/http/docs/site.ts'
import { createOpenapi } from '../../server/http/openapi.ts'
import { renderPage } from '../../server/http/pages.ts'

const publicUrl = 'http://127.0.0.1:8787'
const site = createSite({ operations: catalog, config: { publicUrl } })

const get = async (path: string, headers: Record<string, string> = {}): Promise<Response | undefined> =>
  (await site(path, new Request(publicUrl, { headers }))) ??
  renderPage(path, { config: { publicUrl } as never })

const getText = async (path: string): Promise<string> => {
  const response = await get(path)
  assert.equal(response?.status, 200, path)
  return await response.text()
}

type Parameter = {
  name?: string
  $ref?: string
  example?: unknown
  examples?: unknown
  schema?: any
  in: string
}
type Entry = { kind: string; title: string; page: string; names: string; text: string; url: string }

/** Returns what a file below `/docs/assets/` defines. */
const runAsset = async (name: string, names: readonly string[], globals: object): Promise<any> => {
  const context: Record<string, unknown> = { URL, Request, Uint8Array, crypto, ...globals }
  vm.createContext(context)
  vm.runInContext(await getText(`/docs/assets/${name}`), context)
  return vm.runInContext(`({ ${names.join(', ')} })`, context)
}

describe('The documentation', () => {
  let guides: string[]
  before(async () => {
    guides = [...(await getText('/docs')).matchAll(/href="(docs\/[\w-]+)"/g)].map((match) => `/${match[1]}`)
  })

  it('has pages for the guides, the reference, and what programs read', async () => {
    const wanted =
      'first-contact idempotency dry-run webhooks events filters errors sandbox rate-limits going-live'
    for (const name of wanted.split(' ')) assert.ok(guides.includes(`/docs/${name}`), name)
    for (const path of new Set(guides)) {
      const response = (await get(path))!
      assert.match(response.headers.get('content-type')!, /^text\/html/, path)
      assert.match(
        response.headers.get('content-security-policy')!,
        /default-src 'none'.*connect-src 'self';/,
      )
      if (path !== '/docs/reference')
        assert.match(await getText(`${path}.md`), /^# /, 'the Markdown begins with its title')
    }
    for (const path of [
      '/docs/nope',
      '/docs/design',
      '/docs/reference/nope.md',
      '/docs/../AGENTS.md',
      '/docsx',
    ])
      assert.equal(await get(path), undefined, path)
    for (const name of ['index.html', '../pages.ts', 'constructor', 'scalar.js.gz'])
      assert.equal(await get(`/docs/assets/${name}`), undefined, name)
  })

  it('loads nothing from other hosts', async () => {
    for (const path of ['/docs', ...guides])
      assert.doesNotMatch(await getText(path), /(?:src|<link[^>]* href|action)="(?:https?:)?\/\//, path)
    assert.doesNotMatch(await getText('/docs/assets/docs.css'), /@import|url\(/)
  })

  it('every link of a guide leads to a page, and to a heading that is there', async () => {
    for (const path of new Set(['/docs', ...guides])) {
      for (const [, href] of (await getText(path)).matchAll(/href="([^"]+)"/g)) {
        if (href!.startsWith('https:')) continue
        const { pathname, hash } = new URL(href!, `${publicUrl}${path}`)
        if (pathname.startsWith('/openapi')) continue
        const target = await getText(pathname)
        if (hash !== '' && pathname !== '/docs/reference')
          assert.ok(target.includes(`id="${decodeURIComponent(hash.slice(1))}"`), `${path}: ${href}`)
      }
    }
  })

  it('no Markdown is left unrendered', async () => {
    for (const path of guides) {
      const html = (await getText(path)).replaceAll(/<(pre|code)[^]*?<\/\1>/g, '')
      assert.doesNotMatch(html, /\*\*|\]\(|^#{1,6} |^\||```/m, path)
    }
  })

  it('is compressed, and not sent again to who has it', async () => {
    for (const path of [
      '/docs',
      '/docs/rate-limits',
      '/docs/rate-limits.md',
      '/docs/assets/scalar.js',
      '/llms.txt',
    ]) {
      const plain = (await get(path))!
      const zipped = (await get(path, { 'Accept-Encoding': 'gzip' }))!
      assert.equal(zipped.headers.get('content-encoding'), 'gzip', path)
      const bytes = Buffer.from(await zipped.arrayBuffer())
      assert.deepEqual(gunzipSync(bytes), Buffer.from(await plain.arrayBuffer()), path)
      const etag = plain.headers.get('etag')!
      assert.equal((await get(path, { 'If-None-Match': etag }))!.status, 304, path)
    }
  })

  it('the search finds guides, headers, operations and errors', async () => {
    const entries = JSON.parse(await getText('/docs/search.json')) as Entry[]
    const { MiniSearch } = await runAsset('minisearch.js', ['MiniSearch'], {})
    const script = await getText('/docs/assets/docs.js')
    const part = (start: string, end: string) => script.slice(script.indexOf(start), script.indexOf(end))
    const source = `${part('    const search = new', '    return search\n')}
      ${part('const options =', 'const excerpt')}; find(search, query)`
    const find = (query: string): Entry[] =>
      vm.runInNewContext(source, { MiniSearch, documents: entries, query })
    const top = (query: string) => find(query).map(({ url }) => url)
    for (const query of ['rate limit', 'rate limits', 'Rate-Limit', 'rate limt']) {
      assert.equal(top(query)[0], 'docs/rate-limits', query)
      const titles = find(query).map(({ title }) => title)
      for (const title of ['RateLimit', 'RateLimit-Policy'])
        assert.ok(titles.includes(title), `${query}: ${title}`)
    }
    assert.ok(top('upsert')[0]!.endsWith('#tag/contacts/POST/v1/contacts'))
    assert.ok(top('window_closed').includes('errors/window_closed'))
    assert.ok(top('idempotency key').slice(0, 3).includes('docs/idempotency'))
    for (const { url } of entries)
      if (!url.startsWith('docs/reference#')) assert.ok(await get(`/${url.replace(/#.*/, '')}`), url)
  })

  it('llms.txt links every guide and group, and all links resolve', async () => {
    const text = await getText('/llms.txt')
    const links = [...text.matchAll(/\]\(([^)]+)\)/g)].map((match) => match[1]!)
    for (const path of guides)
      if (path !== '/docs/reference') assert.ok(links.includes(`${publicUrl}${path}.md`), path)
    for (const link of links) {
      assert.ok(link.startsWith(publicUrl), link)
      const path = link.slice(publicUrl.length)
      if (!path.startsWith('/openapi')) await getText(path)
    }
    const full = await getText('/llms-full.txt')
    for (const { summary } of catalog) assert.ok(full.includes(`## ${summary}`), summary)
  })

  it('the collection for Postman has every route, with changes as dry runs', async () => {
    const collection = JSON.parse(await getText('/docs/postman.json'))
    assert.equal(
      collection.info.schema,
      'https://schema.getpostman.com/json/collection/v2.1.0/collection.json',
    )
    const requests = collection.item.flatMap(({ item }: any) => item).map(({ request }: any) => request)
    const found = requests.map(({ method, url }: any) => `${method} /${url.path.join('/')}`)
    const routes = catalog.flatMap((op) =>
      listRoutes(op).map(({ method, path }) => `${method} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`),
    )
    assert.deepEqual(found.toSorted(), routes.toSorted())
    const changes = catalog.filter((op) => op.dryRun).flatMap(listRoutes)
    const dry = requests.filter(({ url }: any) =>
      url.query.some(({ key, value }: any) => key === 'dry_run' && value === 'true'),
    )
    assert.equal(dry.length, changes.length)
    for (const { header } of requests)
      for (const { key, disabled } of header) if (key === 'Api-Confirm') assert.equal(disabled, true)
  })
})

describe('The API reference', () => {
  const document = createOpenapi(catalog, { publicUrl }) as any
  const facade = createOpenapi(catalog, { publicUrl, facade: true }) as any
  const resolve = (parameter: Parameter): Parameter =>
    parameter.$ref ? document.components.parameters[parameter.$ref.split('/').at(-1)!] : parameter

  it('fills in no key and no verb, and presets a dry run for every change', () => {
    const changes = new Set(catalog.filter((op) => op.dryRun).map((op) => op.name))
    let seen = 0
    for (const path of Object.values<any>({ ...document.paths, ...facade.paths })) {
      for (const operation of Object.values<any>(path)) {
        const parameters: Parameter[] = operation.parameters.map(resolve)
        for (const { name, example, examples, schema } of parameters)
          if (name === 'Idempotency-Key' || name === 'Api-Confirm')
            assert.deepEqual([example, examples, schema.default, schema.example], Array(4).fill(undefined))
        if (!changes.has(operation['x-operation'])) continue
        const dryRun = parameters.find(({ name }) => name === 'dry_run')
        assert.deepEqual([dryRun?.in, dryRun?.example], ['query', true], operation.operationId)
        seen++
      }
    }
    assert.ok(seen >= 2 * changes.size)
  })

  it('a quoted Idempotency-Key fits its pattern', () => {
    const pattern = new RegExp(document.components.parameters.IdempotencyKey.schema.pattern, 'u')
    for (const key of ['12345678', '"12345678"', `"${'a'.repeat(128)}"`]) assert.match(key, pattern)
    for (const key of ['1234567', '"12345678', '12345678"', '""', '"a b c d e"'])
      assert.doesNotMatch(key, pattern)
  })

  it('each operation has its rules, and samples in four languages', async () => {
    const { paths } = JSON.parse(await getText('/docs/openapi.json'))
    for (const op of catalog)
      for (const { method, path } of listRoutes(op)) {
        const { description, 'x-codeSamples': samples } = paths[path][method.toLowerCase()]
        for (const text of [
          op.scope,
          'Idempotency',
          ...op.errors,
          ...(op.confirm ? [`Api-Confirm: ${op.confirm}`] : []),
        ])
          assert.ok(description.includes(text), `${op.name}: ${text}`)
        assert.deepEqual(
          samples.map(({ label }: { label: string }) => label),
          ['curl', 'TypeScript', 'Python', 'CLI'],
          op.name,
        )
      }
  })

  it('tries changes out as dry runs with a fresh key, and keeps what was typed', async () => {
    const { createIsChange, createSend } = await runAsset('reference.js', ['createIsChange', 'createSend'], {
      location: { href: `${publicUrl}/docs/reference` },
      document: {},
      fetch: () => assert.fail('nothing is sent'),
    })
    const { paths } = JSON.parse(await getText('/docs/openapi.json'))
    const isChange = createIsChange(paths)
    for (const op of catalog)
      for (const { method, path } of listRoutes(op))
        assert.equal(
          isChange(method, `${publicUrl}${path.replaceAll(/\{\w+\}/g, '7')}`),
          !!op.dryRun,
          op.name,
        )
    const sent: Request[] = []
    const send = createSend(isChange, (request: Request) => sent.push(request))
    const body = JSON.stringify({ phone: '+1 555 010 0042' })
    send(`${publicUrl}/v1/contacts`, { method: 'POST', body })
    send(new Request(`${publicUrl}/v1/contacts`, { method: 'POST', body }))
    send(`${publicUrl}/v1/contacts/7?dry_run=`, { method: 'DELETE' })
    for (const { url } of sent) assert.equal(new URL(url).searchParams.get('dry_run'), 'true', url)
    assert.equal(await sent[1]!.text(), body)
    const keys = sent.map(({ headers }) => headers.get('Idempotency-Key')!)
    assert.equal(new Set(keys).size, 3)
    for (const key of keys) assert.match(key, /^[A-Za-z0-9._:-]{8,128}$/)
    send(`${publicUrl}/v1/contacts/7?dry_run=false`, {
      method: 'PATCH',
      headers: { 'Idempotency-Key': 'mine-0001' },
    })
    assert.match(sent[3]!.url, /dry_run=false$/)
    assert.equal(sent[3]!.headers.get('Idempotency-Key'), 'mine-0001')
    send(`${publicUrl}/v1/contacts`)
    send(`${publicUrl}/v1/contacts/search`, { method: 'POST', body: '{}' })
    for (const { url, headers } of sent.slice(4)) {
      assert.doesNotMatch(url, /dry_run/)
      assert.equal(headers.get('Idempotency-Key'), null)
    }
  })

  it('is a page whose text is there without JavaScript too', async () => {
    const page = await getText('/docs/reference')
    const groups = [...page.matchAll(/href="(reference\/[\w-]+\.md)"/g)].map((match) => match[1]!)
    const texts = await Promise.all(groups.map((group) => getText(`/docs/${group}`)))
    for (const { summary } of catalog) assert.ok(texts.some((text) => text.includes(`## ${summary}`)))
    assert.ok(readFileSync('server/http/docs/assets/LICENSES.txt', 'utf8').includes('MIT License'))
  })
})
