import assert from 'node:assert/strict'
import { it } from 'node:test'
import { catalog } from '../../catalog/index.ts'
import { callAs } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'

type Schema = {
  properties?: Record<string, Schema>
  items?: Schema
  pattern?: string
  format?: string
  type?: string | string[]
  anyOf?: Schema[]
  oneOf?: Schema[]
  $ref?: string
}

/** Nothing has this form: neither an id, a time, a URL, an address nor base64. */
const FORMLESS = '~ , ~'

const MAX_DEPTH = 6

/** Returns inputs with one wrong value each, for every text with a form and every object of a schema. */
const listWrongInputs = (schema: Schema, depth = 0): { value: unknown; pointer: string }[] => {
  if (depth > MAX_DEPTH || schema.$ref !== undefined) return []
  const isFormed = schema.pattern !== undefined || schema.format !== undefined
  const isObject = schema.properties !== undefined && depth > 0
  const inside = [
    ...Object.entries(schema.properties ?? {}).flatMap(([name, member]) =>
      listWrongInputs(member, depth + 1).map(({ value, pointer }) => ({
        value: { [name]: value },
        pointer: `/${name}${pointer}`,
      })),
    ),
    ...(schema.items === undefined
      ? []
      : listWrongInputs(schema.items, depth + 1).map(({ value, pointer }) => ({
          value: [value],
          pointer: `/0${pointer}`,
        }))),
    ...[...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].flatMap((one) => listWrongInputs(one, depth)),
  ]
  return isFormed || isObject ? [{ value: FORMLESS, pointer: '' }, ...inside] : inside
}

everyDatabase('What is wrong with a field', (server) => {
  it('is said with what to send, in no jargon of a library, for every field of every operation', async () => {
    const { owner } = await makeWorkspace(server())
    const call = callAs(server(), owner.key)
    const { paths } = (await (await fetch(`${server().url}/openapi-ops.json`)).json()) as any
    let checked = 0
    for (const { name } of catalog) {
      const body = paths[`/v1/ops/${name}`].post.requestBody?.content['application/json'].schema ?? {}
      const inputs = new Map(listWrongInputs(body).map((one) => [one.pointer, one.value]))
      for (const [pointer, value] of inputs) {
        const { body: problem, text } = await call(name, value as Record<string, unknown>)
        for (const { pointer: at, detail, fix } of problem.errors ?? []) {
          if (at === `#${pointer}`) checked++
          assert.doesNotMatch(detail, /^invalid|expected/i, `${name} ${pointer} ${text}`)
          assert.ok(typeof fix === 'string' && !/^Correct the value|^Send an object\.$/.test(fix), text)
        }
      }
    }
    assert.ok(checked > 200, `${checked}`)
  })
})

everyDoor('What is wrong with a field', (test) => {
  test('is one wrong field, however many rules it breaks', async ({ call }) => {
    const { status, body } = await call('messaging_create_quick_message', { code: '', text: 'Hi' })
    assert.equal(status, 400)
    assert.ok(body.errors.length > 1)
    assert.equal(body.detail, 'code must have at least 1 character.')
  })

  test('an address of a file is https', async ({ call }) => {
    const input = { code: 'menu', type: 'IMAGE', media_url: 'http://example.com/menu.jpg' }
    const { body } = await call('messaging_create_quick_message', input)
    const [{ detail, fix }] = body.errors
    assert.equal(detail, 'must be a public https URL')
    assert.equal(fix, 'Send a URL such as https://example.com/menu.jpg.')
  })

  test('an object is described by its fields', async ({ call }) => {
    const { body } = await call('crm_search_contacts', { sort: 'name' })
    assert.equal(body.errors[0].fix, 'Send an object; its fields are field, direction.')
  })
})
