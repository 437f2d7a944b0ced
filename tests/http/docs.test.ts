import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import vm from 'node:vm'
import { catalog } from '../../catalog/index.ts'
import { createOpenapi } from '../../server/http/openapi.ts'
import { createAssets } from '../../server/http/pages.ts'

const publicUrl = 'http://localhost:8787'

type Parameter = {
  name?: string
  $ref?: string
  example?: unknown
  examples?: unknown
  schema?: any
  in: string
}

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

  it('sends a fresh key with each change, and keeps one that was typed', async () => {
    const script = await (await createAssets()('/docs/assets/init.js', new Request(publicUrl)))!.text()
    let options: any
    const SwaggerUIBundle = (given: unknown) => {
      options = given
    }
    vm.runInNewContext(script, {
      SwaggerUIBundle,
      location: { href: `${publicUrl}/docs` },
      crypto,
      Uint8Array,
    })
    const send = (method: string, headers = {}) =>
      options.requestInterceptor({ method, headers: { ...headers } }).headers['Idempotency-Key']
    const keys = [send('POST'), send('POST'), send('DELETE')]
    assert.equal(new Set(keys).size, 3)
    for (const key of keys) assert.match(key, /^[A-Za-z0-9._:-]{8,128}$/)
    assert.equal(send('PATCH', { 'Idempotency-Key': 'mine-0001' }), 'mine-0001')
    assert.equal(send('GET'), undefined)
  })
})
