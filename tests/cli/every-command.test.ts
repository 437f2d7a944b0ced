import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findOperation } from '../../catalog/index.ts'
import { errors } from '../../catalog/errors.ts'
import { toArgv } from '../../cli/argv.ts'
import { LOCAL_COMMANDS } from '../../cli/main.ts'
import { type CommandSpec, readManifest } from '../../cli/manifest.ts'
import { problemBody, useFakeServer } from './fake-server.ts'

const fake = useFakeServer()
const { commands } = readManifest()

/** The exit code of each error code; `exitCodes` in groups.ts says what they mean. */
const exitOf = (code: keyof typeof errors): number => {
  const { status } = errors[code]
  if ([400, 413, 415].includes(status)) return 2
  if (status === 401 || status === 403) return 4
  const others: Record<number, number> = { 404: 3, 409: 5, 412: 5, 428: 6, 429: 7, 502: 8, 503: 8, 504: 8 }
  return others[status] ?? 1
}

const toWords = (spec: CommandSpec): string[] => {
  const op = findOperation(spec.operation)!
  return [...toArgv(spec, op.examples[0]!.input), ...(op.confirm ? ['--confirm', op.confirm] : [])]
}

describe('Every command', () => {
  const codes = Object.keys(errors) as (keyof typeof errors)[]
  const kinds = Map.groupBy(codes, exitOf)

  it('the error codes have every exit code of a failed call', () => {
    assert.deepEqual([...kinds.keys()].toSorted(), [1, 2, 3, 4, 5, 6, 7, 8])
  })

  for (const [i, spec] of commands.entries()) {
    const name = `wcrm ${spec.group} ${spec.verb}`

    // Every command fails with every exit code, and all commands together with every error code.
    it(`${name}: a failure leaves stdout empty, and has the exit code of its kind`, async () => {
      for (const [exit, alike] of kinds) {
        const code = alike[i % alike.length]!
        const flags = (i + exit) % 2 === 0 || spec.verb === 'export' ? [] : ['--json']
        fake.responses = [{ status: errors[code].status, body: problemBody(code) }]
        const got = await fake.wcrm([...toWords(spec), '--retry=0', ...flags])
        assert.deepEqual([got.exit, got.stdout], [exit, ''], `${code}: ${got.stderr}`)
        if (flags.length > 0) assert.equal((JSON.parse(got.stderr) as { code: string }).code, code)
        else assert.match(got.stderr, /What happened\./)
      }
    })

    it(`${name}: wrong usage exits 2, names the flag, and sends nothing`, async () => {
      for (const words of [['--no-such-flag'], ['--dry-rum'], ['--json=no_such_field'], ['--jq', '.[']]) {
        const got = await fake.wcrm([...toWords(spec), ...words])
        assert.deepEqual([got.exit, got.stdout], [2, ''], `${words.join(' ')}: ${got.stderr}`)
        assert.ok(got.stderr.includes(words[0]!.split('=')[0]!), got.stderr)
      }
      if (spec.fields.some(({ name: field, required }) => required && spec.args.includes(field))) {
        const got = await fake.wcrm([spec.group, spec.verb])
        assert.deepEqual([got.exit, got.stdout], [2, ''], got.stderr)
        assert.ok(
          spec.args.some((arg) => got.stderr.includes(arg)),
          got.stderr,
        )
      }
      assert.deepEqual(fake.requests, [])
    })
  }

  for (const name of [
    ...LOCAL_COMMANDS,
    'diff',
    'apply',
    'login',
    'logout',
    'login-code',
    'doctor',
    'completion',
  ])
    it(`wcrm ${name}: wrong usage exits 2, and a key among the words is not repeated`, async () => {
      const got = await fake.wcrm([name, '--no-such-flag'])
      assert.deepEqual([got.exit, got.stdout], [2, ''], got.stderr)
      assert.match(got.stderr, /no-such-flag/)
      const key = `wc_live_${'a'.repeat(40)}`
      const refused = await fake.wcrm([name, key])
      assert.deepEqual([refused.exit, refused.stdout], [2, ''], refused.stderr)
      assert.ok(!refused.stderr.includes(key))
      assert.deepEqual(fake.requests, [])
    })
})
