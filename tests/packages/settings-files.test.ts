import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { parse } from 'yaml'
import { listIgnoredVariables, readConfig } from '../../server/config.ts'

const read = (file: string): string => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')

type Services = Record<string, { environment?: Record<string, string> }>

/** The variables of a service of `compose.yaml`, with those of its file `.env`. */
const composeVariables = (service: string, file: Record<string, string>): Record<string, string> => {
  const { services } = parse(read('deploy/compose.yaml'), { merge: true }) as { services: Services }
  const filled = Object.entries(services[service]!.environment ?? {}).map(([name, value]) => [
    name,
    value.replaceAll(/\$\{(\w+):[?-]\}/g, (_, from: string) => file[from] ?? ''),
  ])
  return Object.fromEntries(filled) as Record<string, string>
}

const REQUIRED = {
  WCRM_SITE: 'crm.example.com',
  WCRM_SECRET: 'a'.repeat(44),
  POSTGRES_PASSWORD: 'password',
  WCRM_METRICS_TOKEN: 'm'.repeat(48),
}

test('compose: the provider and a rotated secret are set in its file, and what is absent there is absent', () => {
  for (const service of ['server', 'worker', 'migrate']) {
    const env = composeVariables(service, REQUIRED)
    assert.deepEqual(listIgnoredVariables(env), [])
    const { providerUrl, provider, secretPrevious, media } = readConfig({}, env)
    assert.deepEqual(
      [providerUrl, provider, secretPrevious, media],
      [undefined, undefined, undefined, undefined],
    )
  }
  const more = {
    ...REQUIRED,
    WCRM_SECRET_PREVIOUS: 'b'.repeat(44),
    WCRM_PROVIDER_URL: 'https://provider.example.com',
    WCRM_PROVIDER_TOKEN: 'token',
    WCRM_PROVIDER_APP_ID: '15',
    WCRM_PROVIDER_APP_SECRET: 'app secret',
    WCRM_PROVIDER_VERIFY_TOKEN: 'verify token',
  }
  const config = readConfig({}, composeVariables('server', more))
  assert.deepEqual(
    [config.providerUrl, config.providerToken, config.providerAppId, config.providerVerifyToken],
    ['https://provider.example.com', 'token', '15', 'verify token'],
  )
  for (const service of ['server', 'worker'])
    assert.deepEqual(readConfig({}, composeVariables(service, more)).secretPrevious, 'b'.repeat(44))
})

/** As systemd reads a line of an environment file. */
const unquote = (text: string): string => /^'(.*)'$/.exec(text)?.[1] ?? text

test('assignments of the examples mean the same to a shell as to systemd', () => {
  const assignments = ['deploy/systemd/wcrm.env.example', 'docs/operations.md'].flatMap((file) =>
    [...read(file).matchAll(/^#?([A-Z][A-Z_]+)=(\S*)$/gm)].map(([, name = '', value = '']) => ({
      name,
      value,
    })),
  )
  assert.ok(assignments.length > 15)
  for (const { name, value } of assignments) {
    const script = `${name}=${value}\nprintf %s "$${name}"`
    assert.equal(execFileSync('sh', ['-c', script], { encoding: 'utf8' }), unquote(value), `${name}=${value}`)
  }
})

/** The assignments of a file, as systemd and a shell read them. */
const listAssignments = (text: string): Record<string, string> =>
  Object.fromEntries(
    [...text.matchAll(/^([A-Z][A-Z_]+)=(\S*)$/gm)].map(([, name = '', value = '']) => [name, unquote(value)]),
  )

test('a shell that reads the settings works on the database and the files of the units', () => {
  const settings = listAssignments(read('deploy/systemd/wcrm.env.example'))
  for (const unit of ['wcrm', 'wcrm-worker@', 'wcrm-backup']) {
    const [, name = '', value = ''] =
      /^Environment=(\w+)=(\S+)$/m.exec(read(`deploy/systemd/${unit}.service`)) ?? []
    assert.equal(settings[name], value, `${unit}: ${name}`)
    assert.deepEqual(readConfig({}, settings), readConfig({}, { ...settings, [name]: value }), unit)
  }
})

test('the user of the units may read what stands beside their settings', () => {
  // A certificate of the database, as in docs/operations.md.
  assert.match(read('docs/operations.md'), /sslrootcert=\/etc\/wcrm\/ca\.pem/)
  assert.match(read('deploy/README.md'), /^# install -d -m 0750 -g wcrm \/etc\/wcrm$/m)
})
