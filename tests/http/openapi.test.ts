import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { z } from 'zod'
import { errors } from '../../catalog/errors.ts'
import { eventTypes } from '../../catalog/events.ts'
import { type Reason, reasons } from '../../catalog/reasons.ts'
import { catalog, getInputSchema, getOutputSchema, listRoutes } from '../../catalog/index.ts'
import { createOpenapi } from '../../server/http/openapi.ts'
import { renderPage } from '../../server/http/pages.ts'
import { problemExample } from '../../server/http/problem-example.ts'

const publicUrl = 'http://127.0.0.1:8787'
type Any = any
const document: Any = createOpenapi(catalog, { publicUrl })
const facade: Any = createOpenapi(catalog, { publicUrl, facade: true })

const follow = (ref: string, inside: Any): Any =>
  ref
    .slice(2)
    .split('/')
    .reduce((at: Any, key: string) => at?.[key], inside)

const refsOf = function* (node: unknown): Generator<string> {
  if (typeof node !== 'object' || node === null) return
  for (const [key, value] of Object.entries(node)) {
    if (key === '$ref' && typeof value === 'string') yield value
    else yield* refsOf(value)
  }
}

describe('OpenAPI document', () => {
  it('contains every route; a second one every operation under /v1/ops', () => {
    const listFound = ({ paths }: Any): string[] =>
      Object.entries(paths).flatMap(([path, item]) =>
        Object.keys(item as object).map((method) => `${method.toUpperCase()} ${path}`),
      )
    const routes = catalog.flatMap((op) => listRoutes(op).map(({ method, path }) => `${method} ${path}`))
    assert.deepEqual(listFound(document).sort(), routes.sort())
    assert.deepEqual(listFound(facade).sort(), catalog.map(({ name }) => `POST /v1/ops/${name}`).sort())
  })

  it('contains a webhook for each event type, whose sample fits its schema', () => {
    assert.equal(Object.keys(document.webhooks).length, Object.keys(eventTypes).length)
    const $defs = JSON.parse(
      JSON.stringify(document.components.schemas).replaceAll('#/components/schemas/', '#/$defs/'),
    )
    for (const [name, { post }] of Object.entries<Any>(document.webhooks)) {
      const { schema, example } = post.requestBody.content['application/json']
      const root = $defs[schema.$ref.split('/').at(-1)]
      assert.ok(z.fromJSONSchema({ ...root, $defs }).safeParse(example).success, name)
      assert.equal(root.properties.type.const, name.split('/')[0])
    }
  })

  it('filters are recursive, events told apart by their type, alternatives objects of their own', () => {
    const { ContactFilter, Event } = document.components.schemas
    assert.deepEqual(ContactFilter.properties.not, { $ref: '#/components/schemas/ContactFilter' })
    assert.equal(Event.oneOf.length, Object.keys(Event.discriminator.mapping).length)
    const { schema } =
      document.paths['/v1/conversations/{conversation_id}/messages'].post.requestBody.content[
        'application/json'
      ]
    assert.deepEqual(
      schema.oneOf.map((one: Any) => one.required),
      [['text'], ['media_url', 'type'], ['quick_message_id']],
    )
    for (const one of schema.oneOf) assert.equal('text' in one.properties, one.required.includes('text'))
  })

  it('operation ids are unique', () => {
    const ids = [document.paths, document.webhooks, facade.paths].flatMap((paths) =>
      Object.values<Any>(paths).flatMap((item) =>
        Object.values<Any>(item).map((operation) => operation.operationId),
      ),
    )
    assert.equal(new Set(ids).size, ids.length)
    for (const op of catalog) assert.ok(ids.includes(op.name), `${op.name} is no operationId`)
  })

  it('every reference resolves, and no component is unused', () => {
    for (const each of [document, facade]) {
      const refs = new Set(refsOf(each))
      for (const ref of refs) assert.ok(follow(ref, each) !== undefined, `${ref} leads nowhere`)
      for (const [kind, components] of Object.entries<Any>(each.components)) {
        if (kind === 'securitySchemes') continue
        for (const name of Object.keys(components))
          assert.ok(refs.has(`#/components/${kind}/${name}`), `${kind} ${name} is not used`)
      }
    }
  })

  for (const op of catalog) {
    it(`${op.name} has its parameters, body and responses`, () => {
      const one = facade.paths[`/v1/ops/${op.name}`].post
      const body = one.requestBody.content['application/json'].schema
      const objects: Any[] = body.oneOf ?? [body]
      for (const { additionalProperties } of objects) assert.equal(additionalProperties, false)
      for (const field of Object.keys(getInputSchema(op).shape))
        assert.ok(
          objects.some(({ properties }) => field in properties),
          `${field} is missing`,
        )
      for (const code of op.errors) assert.ok(one.responses[errors[code].status], `${code} is missing`)
      for (const status of [400, 401, 403, 413, 415, 429, 500, 503, 504])
        assert.ok(one.responses[status], `${status} is missing`)
      assert.equal(one.responses[409] !== undefined, op.dryRun === true || op.errors.includes('conflict'))
      assert.equal(one.responses[428] !== undefined, op.confirm !== undefined)
    })

    it(`${op.name} has valid examples`, () => {
      assert.ok(op.examples.length > 0)
      for (const { input, output } of op.examples) {
        getInputSchema(op).parse(input)
        getOutputSchema(op).strict().parse(output)
      }
    })
  }

  it('the fields of a route are in path, query or body', () => {
    const list = document.paths['/v1/contacts'].get
    assert.ok(
      list.parameters.some((p: Any) => p.name === 'tag_ids' && p.in === 'query' && p.schema.type === 'array'),
    )
    assert.equal(list.requestBody, undefined)
    const update = document.paths['/v1/contacts/{contact_id}'].patch
    assert.ok(update.parameters.some((p: Any) => p.name === 'contact_id' && p.in === 'path' && p.required))
    assert.ok(update.parameters.some((p: Any) => p.name === 'dry_run' && p.in === 'query'))
    assert.ok(!('contact_id' in update.requestBody.content['application/json'].schema.properties))
  })
})

describe('HTML pages', () => {
  const get = async (path: string) => renderPage(path, { config: { publicUrl } })

  it('every error code has a page', async () => {
    for (const [code, { title }] of Object.entries(errors)) {
      const page = await get(`/errors/${code}`)
      const text = await page!.text()
      assert.ok(text.includes(title) && text.includes(`${publicUrl}/errors/${code}`))
    }
    assert.ok((await (await get('/errors'))!.text()).includes('rate_limited'))
  })

  it('the example of a code has a reason of that code, and the text of a reason only with it', () => {
    for (const code of Object.keys(errors) as (keyof typeof errors)[]) {
      const { detail, reason } = problemExample(code, 'https://wcrm.example')
      const told = Object.entries(reasons).find(([, { when }]) => when === detail)?.[0]
      if (told !== undefined) assert.equal(reason, told, code)
      const codes: readonly string[] = reason === undefined ? [code] : reasons[reason as Reason].codes
      assert.ok(codes.includes(code), `${code}, ${String(reason)}`)
    }
    assert.equal(problemExample('conflict', '').reason, 'still_running')
  })

  it('every reason is given somewhere, and is on the pages of its codes', async () => {
    const source = globSync('{server,mcp,packages/sandbox}/**/*.ts')
      .map((file) => readFileSync(file, 'utf8'))
      .join('\n')
    for (const [reason, { codes }] of Object.entries(reasons)) {
      assert.ok(source.includes(`'${reason}'`), `${reason} is not given anywhere`)
      for (const code of codes)
        assert.ok((await (await get(`/errors/${code}`))!.text()).includes(`<code>${reason}</code>`), reason)
    }
  })

  it('only known paths have a page', async () => {
    for (const path of ['/', '/errors'])
      assert.match((await get(path))!.headers.get('content-security-policy')!, /default-src 'none'/)
    for (const path of ['/errors/nope', '/errors/constructor', '/x']) {
      assert.equal(await get(path), undefined)
    }
  })
})
