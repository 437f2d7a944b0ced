import assert from 'node:assert/strict'
import { before, it } from 'node:test'
import fc from 'fast-check'
import { catalog, findOperation, listRoutes } from '../../catalog/index.ts'
import { customFieldTypes, optionTypes } from '../../catalog/custom-fields.ts'
import { doorsOf, everyDatabase, type Reply, strictOutput } from '../doors.ts'
import { assertProblem } from '../problems.ts'
import { makeWorkspace } from '../servers.ts'
import { buildExampleInputs, listIdFields, getIdValue, seedWorld, type World } from '../world.ts'
import { runs } from '../level.ts'

/**
 * Valid inputs with random mutations: 750 for each door and database, 5,000 in the soak test. None may
 * cause a server error (fast-check reports the seed).
 */
const BATCHES = runs(30, 200)
const CONCURRENCY = 25

type Mutation = { kind: 'set' | 'drop' | 'add' | 'wrap'; at: number; name: string; value: unknown }
type Call = {
  op: string
  example: number
  route: number
  changes: Mutation[]
  dryRun: boolean
  confirm: boolean
  idempotencyKey: string | undefined
  cut: number | undefined
}

/** Inserted verbatim into the JSON: numbers that JSON.stringify never writes. */
const rawNumbers = ['1e400', '-0', '1.0', '123456789012345678901234567890', '9007199254740993', '1e-400']
const toRawMarker = (number: string): string => `@raw ${number}@`

const edgeCaseTexts = [
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
  ...rawNumbers.map(toRawMarker),
]

const value: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...edgeCaseTexts) },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
  { weight: 2, arbitrary: fc.integer() },
  { weight: 1, arbitrary: fc.double({ noNaN: true, noDefaultInfinity: true }) },
  { weight: 1, arbitrary: fc.constantFrom(null, true, false, [], {}, [[]], [null]) },
  { weight: 2, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
  {
    weight: 1,
    arbitrary: fc.array(fc.constantFrom<unknown>(...edgeCaseTexts, 0, -1, 7, 2 ** 53), { maxLength: 60 }),
  },
  {
    weight: 1,
    arbitrary: fc.dictionary(
      fc.constantFrom('', 'a', '__proto__', 'shelf', 'remark', 'email', 'field', 'direction', '\0'),
      fc.constantFrom<unknown>(...edgeCaseTexts, 1, null),
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
    } satisfies Record<keyof Mutation, unknown>),
    { maxLength: 3 },
  ) as fc.Arbitrary<Mutation[]>,
  dryRun: fc.boolean(),
  confirm: fc.boolean(),
  idempotencyKey: fc.option(fc.constantFrom('same-key-again', 'x', 'another-key-1', '"quoted-key"'), {
    nil: undefined,
    freq: 8,
  }),
  cut: fc.option(fc.nat(200), { nil: undefined, freq: 30 }),
})

/** The first batch of each run: random mutations produce few well-formed ids that do not exist. */
const unknownContact: Call = {
  op: 'crm_get_contact',
  example: 0,
  route: 0,
  changes: [{ kind: 'set', at: 0, name: '', value: '9223372036854775807' }],
  dryRun: false,
  confirm: false,
  idempotencyKey: undefined,
  cut: undefined,
}

/** Returns every property in a value that can be mutated. */
const listTargets = (node: unknown): { holder: Record<string, unknown>; key: string }[] =>
  node === null || typeof node !== 'object'
    ? []
    : Object.keys(node).flatMap((key) => [
        { holder: node as Record<string, unknown>, key },
        ...listTargets((node as Record<string, unknown>)[key]),
      ])

const mutate = (input: Record<string, unknown>, changes: readonly Mutation[]): void => {
  for (const { kind, at, name, value: newValue } of changes) {
    // The arbitraries return their constants by reference, which a later mutation would change.
    const replacement = structuredClone(newValue)
    const all = listTargets(input)
    const target = all[at % Math.max(1, all.length)]
    if (kind === 'add' || !target)
      Object.defineProperty(input, name, {
        value: replacement,
        enumerable: true,
        configurable: true,
        writable: true,
      })
    else if (kind === 'drop') delete target.holder[target.key]
    else target.holder[target.key] = kind === 'wrap' ? [target.holder[target.key]] : replacement
  }
}

const jsonText = (input: unknown, cut: number | undefined): string => {
  const text = JSON.stringify(input).replaceAll(/"@raw ([^@]+)@"/g, '$1')
  return cut === undefined ? text : text.slice(0, cut)
}

const inPath = (part: unknown): string =>
  encodeURIComponent((typeof part === 'string' ? part : (JSON.stringify(part) ?? '')).toWellFormed())
const inQuery = (part: unknown): string => (typeof part === 'string' ? part : JSON.stringify(part))

type SentRequest = { path: string; method: string; body: string | undefined }

const overOps = ({ op, cut }: Call, input: Record<string, unknown>): SentRequest => ({
  path: `/v1/ops/${op}`,
  method: 'POST',
  body: jsonText(input, cut),
})

const overRest = ({ op, route: index, cut }: Call, input: Record<string, unknown>): SentRequest => {
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

everyDatabase('Invalid input (property test)', (server) => {
  let world: World
  const inputs = new Map<string, Record<string, unknown>[]>()
  before(async () => {
    world = await seedWorld(server(), await makeWorkspace(server()), 'Bad', '0177')
    // A custom field of every type, each with a value to mutate.
    const [rest] = doorsOf(server().url, world.workspace.owner.key)
    for (const type of customFieldTypes)
      await rest!.call('crm_create_custom_field', {
        key: `a_${type}`,
        type,
        ...(optionTypes.includes(type) ? { options: [{ label: 'One', value: '1' }] } : {}),
      })
    const attributes = Object.fromEntries(customFieldTypes.map((type) => [`a_${type}`, '1']))
    for (const op of catalog) {
      const examples = buildExampleInputs(world, op)
      // Every id field with a valid id, so that the record often exists.
      inputs.set(op.name, [
        ...examples,
        ...listIdFields(op).map((f) => ({ ...examples[0], [f]: getIdValue(world, op, f) })),
        ...('attributes' in op.input.shape
          ? Object.entries(attributes).map(([key, one]) => ({ ...examples[0], attributes: { [key]: one } }))
          : []),
      ])
    }
  })

  const send = async (made: Call, write: typeof overOps): Promise<{ reply: Reply; sent: SentRequest }> => {
    const op = findOperation(made.op)!
    const choices = inputs.get(op.name)!
    const input = structuredClone(choices[made.example % choices.length]!)
    if (op.dryRun && made.dryRun) input['dry_run'] = true
    mutate(input, made.changes)
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
    // A file is returned as bytes, everything else as JSON.
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

  it('every text of every operation is refused with NUL or a lone surrogate in it', async () => {
    const tried = new Set<string>()
    for (const op of catalog)
      for (const [example, input] of inputs.get(op.name)!.entries())
        for (const [at, { holder, key }] of listTargets(input).entries()) {
          if (typeof holder[key] !== 'string' || tried.has(`${op.name} ${key}`)) continue
          tried.add(`${op.name} ${key}`)
          for (const text of ['a\0b', 'a\ud800b']) {
            const changes: Mutation[] = [{ kind: 'set', at, name: '', value: text }]
            const { reply, sent } = await send(
              {
                op: op.name,
                example,
                route: 0,
                changes,
                dryRun: true,
                confirm: true,
                idempotencyKey: undefined,
                cut: undefined,
              },
              overOps,
            )
            const message = `${sent.path} ${sent.body}\n${reply.status} ${reply.text.slice(0, 500)}`
            // Rows of an import are refused one by one.
            assert.ok(reply.status === 400 || (op.itemwise && reply.status === 200), message)
          }
        }
    assert.ok(tried.size > catalog.length, 'operations have texts')
  })

  for (const [door, write] of [
    ['rest', overRest],
    ['ops', overOps],
  ] as const) {
    it(`every response is a success or a complete problem, never a 5xx [${door}]`, async () => {
      const seen = new Map<number, number>()
      await fc.assert(
        fc.asyncProperty(
          fc.array(call, { minLength: CONCURRENCY, maxLength: CONCURRENCY }),
          async (calls) => {
            for (const [i, { reply, sent }] of (
              await Promise.all(calls.map((c) => send(c, write)))
            ).entries()) {
              const message =
                `${sent.method} ${sent.path} ${sent.body ?? ''}\n` +
                `${reply.status} ${reply.text.slice(0, 1000)}`
              seen.set(reply.status, (seen.get(reply.status) ?? 0) + 1)
              assert.ok(reply.status < 500, message)
              if (reply.status >= 400) assertProblem(reply, server().url)
              else if (reply.body !== undefined)
                assert.ok(strictOutput(findOperation(calls[i]!.op)!).safeParse(reply.body).success, message)
            }
          },
        ),
        { numRuns: BATCHES, examples: [[Array.from({ length: CONCURRENCY }, () => unknownContact)]] },
      )
      const countStatuses = (from: number, to: number) =>
        [...seen].filter(([status]) => status >= from && status < to).reduce((n, [, count]) => n + count, 0)
      const total = BATCHES * CONCURRENCY
      assert.equal(countStatuses(0, 600), total)
      // The mutations must produce successes, validation errors and unknown ids.
      assert.ok(
        countStatuses(200, 300) > total / 10 &&
          countStatuses(400, 401) > total / 5 &&
          countStatuses(404, 405) >= CONCURRENCY,
        JSON.stringify([...seen]),
      )
    })
  }
})
