import assert from 'node:assert/strict'
import { before, it } from 'node:test'
import fc from 'fast-check'
import { catalog, findOperation, type Operation, getOutputSchema, listRoutes } from '../../catalog/index.ts'
import { customFieldTypes, optionTypes } from '../../catalog/custom-fields.ts'
import { doorsOf, everyDatabase, type Reply } from '../doors.ts'
import { assertProblem } from '../problems.ts'
import { makeWorkspace } from '../servers.ts'
import { exampleInputs, idFields, idValue, plant, type World } from '../world.ts'
import { runs } from '../level.ts'

/**
 * Good inputs, spoiled at random: 750 for each door and database, 5,000 in the soak. However bad, none is a fault of the
 * server's (fast-check tells the seed).
 */
const BATCHES = runs(30, 200)
const AT_ONCE = 25

type Change = { kind: 'set' | 'drop' | 'add' | 'wrap'; at: number; name: string; value: unknown }
type Call = {
  op: string
  example: number
  route: number
  changes: Change[]
  dryRun: boolean
  confirm: boolean
  idempotencyKey: string | undefined
  cut: number | undefined
}

/** Written as they stand into the JSON: numbers that no JavaScript value makes. */
const rawNumbers = ['1e400', '-0', '1.0', '123456789012345678901234567890', '9007199254740993', '1e-400']
const marked = (number: string): string => `@raw ${number}@`

const nastyTexts = [
  '',
  ' ',
  '\0',
  'a\0b',
  '\ud800',
  '\udc00',
  '\ufffe',
  '\u202eabc',
  '0',
  '-1',
  '01',
  '+1',
  '9223372036854775807',
  '9223372036854775808',
  '99999999999999999999',
  '1e3',
  'NaN',
  'null',
  '%',
  '_',
  '\\',
  '\\%',
  "'",
  '"',
  '$1',
  '{}',
  '[]',
  '{{1}}',
  "'; drop table contacts; --",
  '٧',
  '２',
  'İ',
  'ß',
  'ﬀ',
  '😀',
  '👨‍👩‍👧‍👦',
  'e\u0301',
  '../..',
  '__proto__',
  'constructor',
  '2026-02-30',
  '2026-13-01T99:99:99Z',
  '+999999-01-01',
  '-271821-04-20',
  'x'.repeat(256),
  'x'.repeat(3000),
  '😀'.repeat(128),
  '+15550100042',
  '00',
  '+',
  '+0',
  'a@b',
  'a@b.c',
  ...rawNumbers.map(marked),
]

const value: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...nastyTexts) },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
  { weight: 2, arbitrary: fc.integer() },
  { weight: 1, arbitrary: fc.double({ noNaN: true, noDefaultInfinity: true }) },
  { weight: 1, arbitrary: fc.constantFrom(null, true, false, [], {}, [[]], [null]) },
  { weight: 2, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
  {
    weight: 1,
    arbitrary: fc.array(fc.constantFrom<unknown>(...nastyTexts, 0, -1, 7, 2 ** 53), { maxLength: 60 }),
  },
  {
    weight: 1,
    arbitrary: fc.dictionary(
      fc.constantFrom('', 'a', '__proto__', 'shelf', 'remark', 'email', 'field', 'direction', '\0'),
      fc.constantFrom<unknown>(...nastyTexts, 1, null),
      { noNullPrototype: true },
    ),
  },
)

const call: fc.Arbitrary<Call> = fc.record({
  op: fc.constantFrom<string>(...catalog.map((op) => op.name)),
  example: fc.nat(40),
  route: fc.nat(3),
  changes: fc.array(
    fc.record({
      kind: fc.constantFrom('set', 'set', 'set', 'drop', 'add', 'wrap'),
      at: fc.nat(30),
      name: fc.constantFrom('nmae', 'limit', 'cursor', 'dry_run', '__proto__', '', 'ü', 'x'.repeat(300)),
      value,
    } satisfies Record<keyof Change, unknown>),
    { maxLength: 3 },
  ) as fc.Arbitrary<Change[]>,
  dryRun: fc.boolean(),
  confirm: fc.boolean(),
  idempotencyKey: fc.option(fc.constantFrom('same-key-again', 'x', 'another-key-1', '"quoted-key"'), {
    nil: undefined,
    freq: 8,
  }),
  cut: fc.option(fc.nat(200), { nil: undefined, freq: 30 }),
})

/** Every place in a value that a change can be made at. */
const places = (node: unknown): { holder: Record<string, unknown>; key: string }[] =>
  node === null || typeof node !== 'object'
    ? []
    : Object.keys(node).flatMap((key) => [
        { holder: node as Record<string, unknown>, key },
        ...places((node as Record<string, unknown>)[key]),
      ])

const spoil = (input: Record<string, unknown>, changes: readonly Change[]): void => {
  for (const { kind, at, name, value: made } of changes) {
    // The arbitraries hand out their constants themselves, which a later change would spoil for good.
    const instead = structuredClone(made)
    const all = places(input)
    const place = all[at % Math.max(1, all.length)]
    if (kind === 'add' || !place)
      Object.defineProperty(input, name, {
        value: instead,
        enumerable: true,
        configurable: true,
        writable: true,
      })
    else if (kind === 'drop') delete place.holder[place.key]
    else place.holder[place.key] = kind === 'wrap' ? [place.holder[place.key]] : instead
  }
}

const jsonText = (input: unknown, cut: number | undefined): string => {
  const text = JSON.stringify(input).replaceAll(/"@raw ([^@]+)@"/g, '$1')
  return cut === undefined ? text : text.slice(0, cut)
}

const inPath = (part: unknown): string =>
  encodeURIComponent((typeof part === 'string' ? part : (JSON.stringify(part) ?? '')).toWellFormed())
const inQuery = (part: unknown): string => (typeof part === 'string' ? part : JSON.stringify(part))

type Sent = { path: string; method: string; body: string | undefined }

const overOps = ({ op, cut }: Call, input: Record<string, unknown>): Sent => ({
  path: `/v1/ops/${op}`,
  method: 'POST',
  body: jsonText(input, cut),
})

const overRest = ({ op, route: index, cut }: Call, input: Record<string, unknown>): Sent => {
  const routes = listRoutes(findOperation(op)!)
  const route = routes[index % routes.length]!
  const query = new URLSearchParams()
  const body: Record<string, unknown> = {}
  for (const name of Object.keys(input)) {
    if (route.pathFields.includes(name)) continue
    if (route.queryFields.includes(name))
      for (const one of [input[name]].flat()) query.append(name, inQuery(one))
    else Object.defineProperty(body, name, { value: input[name], enumerable: true })
  }
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => inPath(input[name]))
  const hasBody = route.method !== 'GET' && (route.bodyFields.length > 0 || Object.keys(body).length > 0)
  return {
    path: `${path}${query.size > 0 ? `?${query}` : ''}`,
    method: route.method,
    body: hasBody ? jsonText(body, cut) : undefined,
  }
}

everyDatabase('Bad input', (server) => {
  let world: World
  const inputs = new Map<string, Record<string, unknown>[]>()
  before(async () => {
    world = await plant(server(), await makeWorkspace(server()), 'Bad', '0177')
    // A custom field of every type, each with a value to spoil.
    const [rest] = doorsOf(server().url, world.workspace.owner.key)
    for (const type of customFieldTypes)
      await rest!.call('crm_create_custom_field', {
        key: `a_${type}`,
        type,
        ...(optionTypes.includes(type) ? { options: [{ label: 'One', value: '1' }] } : {}),
      })
    const attributes = Object.fromEntries(customFieldTypes.map((type) => [`a_${type}`, '1']))
    for (const op of catalog as readonly Operation[]) {
      const examples = exampleInputs(world, op)
      // Every id in its own kind of field, so that what is asked for is often there.
      inputs.set(op.name, [
        ...examples,
        ...idFields(op).map((f) => ({ ...examples[0], [f]: idValue(world, op, f) })),
        ...('attributes' in op.input.shape
          ? Object.entries(attributes).map(([key, one]) => ({ ...examples[0], attributes: { [key]: one } }))
          : []),
      ])
    }
  })

  const send = async (made: Call, write: typeof overOps): Promise<{ reply: Reply; sent: Sent }> => {
    const op = findOperation(made.op)!
    const choices = inputs.get(op.name)!
    const input = structuredClone(choices[made.example % choices.length]!)
    if (op.dryRun && made.dryRun) input['dry_run'] = true
    spoil(input, made.changes)
    const sent = write(made, input)
    const response = await fetch(server().url + sent.path, {
      method: sent.method,
      ...(sent.body === undefined ? {} : { body: sent.body }),
      headers: {
        Authorization: `Bearer ${world.workspace.owner.key}`,
        ...(sent.body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...(made.idempotencyKey === undefined ? {} : { 'Idempotency-Key': made.idempotencyKey }),
        ...(made.confirm && op.confirm ? { 'Api-Confirm': op.confirm } : {}),
      },
    })
    const text = await response.text()
    // A file is bytes; all else is JSON.
    const isFile = response.headers.get('content-type') === 'image/jpeg'
    return {
      sent,
      reply: {
        status: response.status,
        text,
        body: isFile ? undefined : JSON.parse(text),
        headers: Object.fromEntries(response.headers),
      },
    }
  }

  for (const [door, write] of [
    ['rest', overRest],
    ['ops', overOps],
  ] as const) {
    it(`is answered with a whole problem, never with a fault of the server [${door}]`, async () => {
      const seen = new Map<number, number>()
      await fc.assert(
        fc.asyncProperty(fc.array(call, { minLength: AT_ONCE, maxLength: AT_ONCE }), async (calls) => {
          for (const [i, { reply, sent }] of (
            await Promise.all(calls.map((c) => send(c, write)))
          ).entries()) {
            const told = `${sent.method} ${sent.path} ${sent.body ?? ''}\n${reply.status} ${reply.text.slice(0, 1000)}`
            seen.set(reply.status, (seen.get(reply.status) ?? 0) + 1)
            assert.ok(reply.status < 500, told)
            if (reply.status >= 400) assertProblem(reply, server().url)
            else if (reply.body !== undefined)
              assert.ok(getOutputSchema(findOperation(calls[i]!.op)!).strict().safeParse(reply.body).success, told)
          }
        }),
        { numRuns: BATCHES },
      )
      const of = (from: number, to: number) =>
        [...seen].filter(([status]) => status >= from && status < to).reduce((n, [, count]) => n + count, 0)
      const tried = BATCHES * AT_ONCE
      assert.equal(of(0, 600), tried)
      // Were all refused at the door, or none, nothing would have been tried.
      assert.ok(
        of(200, 300) > tried / 10 && of(400, 401) > tried / 5 && of(404, 405) > 0,
        JSON.stringify([...seen]),
      )
    })
  }
})
