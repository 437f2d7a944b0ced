import assert from 'node:assert/strict'
import { stripTypeScriptTypes } from 'node:module'
import { test } from 'node:test'
import { catalog, type Operation } from '../../catalog/index.ts'
import { createPackage } from '../../tools/n8n/package.ts'
import { chooseRoute, createProperties } from '../../tools/n8n/properties.ts'
import { createRequest } from '../../server/http/docs/samples.ts'

type Property = Record<string, any>

const properties = createProperties() as Property[]
const options = properties
  .filter(({ name }) => name === 'operation')
  .flatMap((property) => property['options'])

/** The fields of an operation, also those that are added on demand. */
const listFields = (op: Operation): Property[] =>
  properties
    .filter(({ displayOptions }) => displayOptions?.show.operation?.includes(op.name))
    .flatMap((property) => (property['type'] === 'collection' ? property['options'] : [property]))

/** Whether n8n enters such a value in the field. */
const fits = ({ type, options: choices }: Property, value: unknown): boolean => {
  if (type === 'options') return choices.some((choice: Property) => choice['value'] === value)
  if (type === 'json') return true
  return typeof value === (type === 'boolean' || type === 'number' ? type : 'string')
}

/** The request of an operation, as n8n makes it of these fields. */
const toRequest = (op: Operation, input: Record<string, unknown>) => {
  const { routing } = options.find(({ value }) => value === op.name)
  let path: string = routing.request.url
  const query: [string, string][] = []
  const body: Record<string, unknown> = {}
  for (const field of listFields(op)) {
    const name: string = field['name']
    const value = input[name]
    if (value === undefined) continue
    assert.ok(fits(field, value), `${op.name}: ${name} is ${field['type']}`)
    const send = field['routing']?.send
    if (!send)
      path = path.replace(`{{encodeURIComponent($parameter["${name}"])}}`, encodeURIComponent(String(value)))
    else if (send.type === 'body') body[send.property] = value
    else for (const item of [value].flat()) query.push([send.property, String(item)])
  }
  return { path: path.replace(/^=/, ''), query: query.toSorted(), body }
}

test('the node for n8n has every operation, whose examples it sends as the documentation does', () => {
  assert.deepEqual(options.map(({ value }) => value).toSorted(), catalog.map(({ name }) => name).toSorted())
  for (const op of catalog) {
    const route = chooseRoute(op)
    const { routing } = options.find(({ value }) => value === op.name)
    assert.equal(routing.request.method, route.method)
    assert.equal(routing.send?.preSend !== undefined, op.dryRun === true, op.name)
    for (const { input } of op.examples) {
      const expected = createRequest(op, route, input as object as Record<string, unknown>)
      assert.deepEqual(toRequest(op, { ...(input as object), ...(op.dryRun ? { dry_run: true } : {}) }), {
        path: expected.path,
        query: expected.query.toSorted(),
        body: expected.body ?? {},
      })
    }
  }
})

test('a field of an operation has one place in the node, and a list can be read to its end', () => {
  for (const op of catalog) {
    const names = listFields(op).map(({ name }) => name as string)
    assert.equal(new Set(names).size, names.length, op.name)
    assert.equal(names.includes('returnAll'), 'cursor' in op.input.shape, op.name)
    for (const name of Object.keys(op.input.shape))
      assert.ok(name === 'cursor' || names.includes(name), `${op.name} lacks ${name}`)
    assert.equal(names.includes('confirm'), op.confirm !== undefined, op.name)
  }
})

test('the generated files are code, and name what they bring', () => {
  const files = createPackage()
  for (const [path, text] of files) if (path.endsWith('.ts')) stripTypeScriptTypes(text)
  const { n8n, license } = JSON.parse(files.get('package.json')!)
  assert.equal(license, 'Apache-2.0')
  for (const path of [...n8n.nodes, ...n8n.credentials])
    assert.ok(files.has(path.replace('dist/', '').replace(/\.js$/, '.ts')), path)
})
