import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { beforeEach, describe, it } from 'node:test'
import { loadCredentials, storeCredentials } from '../../cli/credentials.ts'
import { credentialsPath } from '../../cli/credentials-file.ts'
import { problemBody, useFakeServer } from './fake-server.ts'

const fake = useFakeServer()
const stored = { WCRM_API_KEY: '', WCRM_URL: '' }
const whoami = {
  workspace: { id: '1', name: 'Demo' },
  staff: { id: '2', name: 'Olivia', role: 'owner' },
  key: { scopes: ['contacts:read'], test: false, expires_at: null },
}
const file = (): string => credentialsPath({ XDG_CONFIG_HOME: fake.home })
const env = () => ({ XDG_CONFIG_HOME: fake.home, WCRM_KEYCHAIN: 'off' })
const write = (text: string): void => {
  mkdirSync(dirname(file()), { recursive: true })
  writeFileSync(file(), text, { mode: 0o600 })
}
const login = (key: string, ...flags: string[]) =>
  fake.wcrm(['login', '--url', fake.url, ...flags], { stdin: key, env: stored })
const keyOfLastCall = (): string | undefined => fake.requests.at(-1)!.headers.authorization

beforeEach(() => {
  rmSync(file(), { force: true })
  fake.responses = [{ body: whoami }]
})

describe('CLI: profiles', () => {
  it('several keys of one server: -p, --profile, WCRM_PROFILE and switch choose one', async () => {
    await login('wc_live_one', '--profile', 'one', '--with-token')
    const second = await login('wc_live_two', '-p', 'two')
    assert.match(second.stdout, /Profile two is the default now/)
    const used = async (argv: string[], more: Record<string, string> = {}) => {
      const { exit, stderr } = await fake.wcrm(argv, { env: { ...stored, ...more } })
      assert.equal(exit, 0, stderr)
      return keyOfLastCall()
    }
    assert.equal(await used(['whoami']), 'Bearer wc_live_two')
    assert.equal(await used(['whoami', '-p', 'one']), 'Bearer wc_live_one')
    assert.equal(await used(['--profile=one', 'whoami']), 'Bearer wc_live_one')
    assert.equal(await used(['whoami'], { WCRM_PROFILE: 'one' }), 'Bearer wc_live_one')
    // What is said on the command line comes before the environment, which comes before WCRM_PROFILE.
    assert.equal(await used(['whoami', '-p', 'one'], { WCRM_API_KEY: 'wc_live_env' }), 'Bearer wc_live_one')
    assert.equal(
      await used(['whoami'], { WCRM_PROFILE: 'one', WCRM_API_KEY: 'wc_live_env' }),
      'Bearer wc_live_env',
    )
    assert.equal((await fake.wcrm(['switch', 'one'], { env: stored })).exit, 0)
    assert.equal(await used(['whoami']), 'Bearer wc_live_one')
    const list = await fake.wcrm(['profiles', '--json'], { env: stored })
    assert.deepEqual(JSON.parse(list.stdout), {
      data: [
        { name: 'one', default: true, url: fake.url, store: 'file' },
        { name: 'two', default: false, url: fake.url, store: 'file' },
      ],
    })
    const gone = await fake.wcrm(['logout', '-p', 'one'], { env: stored })
    assert.match(gone.stderr, /profile one/)
    assert.equal((await fake.wcrm(['profiles'], { env: stored })).stdout, `two\tfalse\t${fake.url}\tfile\n`)
  })

  it('unknown profiles name the known ones; the key of another server is not sent', async () => {
    await login('wc_live_one', '--profile', 'one')
    fake.requests.length = 0
    for (const argv of [
      ['switch', 'three'],
      ['whoami', '-p', 'three'],
    ]) {
      const { exit, stderr } = await fake.wcrm(argv, { env: stored })
      assert.deepEqual([exit, /There are: one/.test(stderr)], [3, true], stderr)
    }
    const other = await fake.wcrm(['whoami', '-p', 'one', '--url', 'http://127.0.0.1:9'], { env: stored })
    assert.equal(other.exit, 2)
    assert.match(other.stderr, /The profile one is of/)
    assert.deepEqual(fake.requests, [])
  })

  it('several keys of a server, none of them the default: the candidates are named', async () => {
    await login('wc_live_one', '--profile', 'one')
    await login('wc_live_two', '--profile', 'two')
    await fake.wcrm(['login', '-p', 'away', '--url', fake.url.replace('127.0.0.1', 'localhost')], {
      stdin: 'wc_live_away',
      env: stored,
    })
    await fake.wcrm(['logout', '-p', 'away'], { env: stored })
    const { exit, stderr } = await fake.wcrm(['whoami', '--url', fake.url], { env: stored })
    assert.deepEqual([exit, /one, two/.test(stderr)], [2, true], stderr)
  })

  it('a server that starts neither changes the default nor replaces a key', async () => {
    await login('wc_live_mine')
    const before = JSON.parse(readFileSync(file(), 'utf8')) as { default: string; profiles: object }
    for (const url of [fake.url, 'http://127.0.0.1:9'])
      await storeCredentials({ url, key: 'wc_live_demo', env: env(), by: 'serve' })
    const after = JSON.parse(readFileSync(file(), 'utf8')) as typeof before
    assert.equal(after.default, before.default)
    assert.deepEqual({ ...after.profiles, ...before.profiles }, after.profiles)
    assert.deepEqual(Object.keys(after.profiles), [before.default, 'demo', '127.0.0.1:9'])
    assert.equal((await loadCredentials(env())).key, 'wc_live_mine')
    rmSync(file())
    const first = await storeCredentials({ url: fake.url, key: 'wc_live_demo', env: env(), by: 'serve' })
    assert.deepEqual([first.isDefault, (await loadCredentials(env())).key], [true, 'wc_live_demo'])
  })

  it('status: server, source of the key, person, scopes, version, latency', async () => {
    await login('wc_live_one', '--profile', 'one')
    const read = async (argv: string[], more = {}) => {
      fake.responses = [{ body: { status: 'ok', version: '9.9.9' } }, { body: whoami }]
      const { exit, stdout, stderr } = await fake.wcrm(argv, { env: { ...stored, ...more } })
      assert.equal(exit, 0, stderr)
      assert.ok(!stdout.includes('wc_live_'))
      return stdout
    }
    const shown = JSON.parse(await read(['status', '--json', '-p', 'one'])) as Record<string, unknown>
    assert.deepEqual(
      ['url', 'key_source', 'profile', 'profile_source', 'server_version', 'scopes'].map((n) => shown[n]),
      [fake.url, 'file', 'one', 'flag', '9.9.9', ['contacts:read']],
    )
    assert.equal(typeof shown['latency_ms'], 'number')
    assert.match(await read(['--json', 'status'], { WCRM_API_KEY: 'wc_live_x' }), /"key_source":"env"/)
    assert.match(await read(['status']), /profile one \(the default\)/)
  })
})

describe('CLI: the file of the keys', () => {
  it('files from before profiles go on working', async () => {
    const account = fake.url
    write(JSON.stringify({ url: fake.url, logins: { [account]: { store: 'file', key: 'wc_live_old' } } }))
    await fake.wcrm(['whoami'], { env: stored })
    assert.equal(keyOfLastCall(), 'Bearer wc_live_old')
    await login('wc_live_new', '--profile', 'new')
    await fake.wcrm(['whoami', '-p', new URL(fake.url).host], { env: stored })
    assert.equal(keyOfLastCall(), 'Bearer wc_live_old')
  })

  it('a broken, locked or open file, and an absent keychain, are told with the fix; none is overwritten', async () => {
    write('{"profiles": wc_live_secret')
    for (const argv of [['whoami'], ['profiles'], ['login'], ['status', '--json']]) {
      const { exit, stdout, stderr } = await fake.wcrm(argv, { stdin: 'wc_live_x', env: stored })
      assert.deepEqual([exit, stdout, /is damaged/.test(stderr)], [1, '', true], stderr)
      assert.ok(!stderr.includes('secret'))
    }
    const doctor = await fake.wcrm(['doctor'], { env: stored })
    assert.deepEqual([doctor.exit, /PROBLEM.*is damaged/.test(doctor.stdout)], [1, true])
    await storeCredentials({ url: fake.url, key: 'wc_live_demo', env: env(), by: 'serve' })
    assert.equal(readFileSync(file(), 'utf8'), '{"profiles": wc_live_secret')
    assert.equal((await fake.wcrm(['whoami'])).exit, 0, 'key and URL come from the environment')
    write(
      JSON.stringify({ profiles: { k: { url: fake.url, store: 'keychain', account: 'a' } }, default: 'k' }),
    )
    const locked = await fake.wcrm(['whoami'], { env: stored })
    assert.deepEqual([locked.exit, /keychain, which cannot be read/.test(locked.stderr)], [4, true])
    assert.match(locked.stderr, /WCRM_API_KEY/)
    for (const mode of [0o644, 0o640, 0o604]) {
      chmodSync(file(), mode)
      assert.match((await fake.wcrm(['profiles'], { env: stored })).stderr, /could be read by other users/)
      assert.equal(statSync(file()).mode & 0o777, 0o600)
    }
  })

  it('http to another machine is warned of, http to this one is not', async () => {
    const warned = async (url: string) =>
      /not encrypted/.test(
        (await fake.wcrm(['whoami', '--url', url], { env: { WCRM_API_KEY: 'wc_live_x' } })).stderr,
      )
    assert.equal(await warned('http://crm.invalid'), true)
    assert.equal(await warned(fake.url.replace('127.0.0.1', 'localhost')), false)
    assert.equal(await warned('https://crm.invalid'), false)
    const profile = { url: 'http://crm.invalid', store: 'file', account: 'a', key: 'wc_live_x' }
    write(JSON.stringify({ profiles: { plain: profile }, default: 'plain' }))
    assert.match((await fake.wcrm(['whoami'], { env: stored })).stderr, /not encrypted/, 'of a profile too')
  })
})

describe('CLI: no key is printed by mistake', () => {
  const key = `wc_live_${'Zq7'.repeat(14).slice(0, 40)}`
  const cut = key.slice(0, 20)
  const mistakes: readonly [argv: string[], env: Record<string, string>, stdin?: string][] = [
    ...[key, cut].flatMap((text): [string[], Record<string, string>][] => [
      [['login', text], {}],
      [['login', '--with-token', text], {}],
      [['login', '--profile', text], {}],
      [['-p', text, 'whoami'], {}],
      [['switch', text], {}],
      [['profiles', text], {}],
      [['status', text], {}],
      [[text], {}],
      [['whoami', '--url', `https://${text}@crm.invalid`], {}],
      [['whoami', '--url', `https://u:${text}@crm.invalid`, '--json'], {}],
      [['whoami', '--url', text], {}],
      [['whoami'], { WCRM_URL: `https://crm.invalid/?key=${text}` }],
      [['whoami'], { WCRM_PROFILE: text, WCRM_API_KEY: '' }],
      [['doctor', '--json'], { WCRM_URL: text }],
      [['mcp'], { WCRM_URL: `https://${text}@crm.invalid` }],
    ]),
    [['whoami'], { WCRM_API_KEY: `${key} ${key}` }],
    [['whoami', '--url', 'https://:Zq7Zq7@crm.invalid'], {}],
    [['whoami', '--url', 'https://crm.invalid/#Zq7Zq7'], {}],
    // The server quotes it.
    [['whoami'], {}],
    [['login', '--json'], { WCRM_API_KEY: '' }, `${key} ${key}`],
  ]
  for (const json of [false, true])
    it(`whatever the mistake${json ? ', also with --json' : ''}`, async () => {
      fake.responses = [
        { status: 401, body: problemBody('unauthenticated', { detail: `No such key: ${key}` }) },
      ]
      for (const [argv, more, stdin] of mistakes) {
        const { stdout, stderr, exit } = await fake.wcrm(json ? [...argv, '--json'] : argv, {
          env: more,
          ...(stdin === undefined ? {} : { stdin }),
        })
        assert.ok(exit > 0, argv.join(' '))
        assert.ok(!`${stdout}${stderr}`.includes('Zq7Zq7'), `${argv.join(' ')}: ${stdout}${stderr}`)
      }
    })
})
