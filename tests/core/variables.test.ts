import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { listIgnoredVariables, readConfig, settings } from '../../server/config.ts'

describe('Variables of the environment', () => {
  it('are refused when they are misspelt, with the name that was meant', () => {
    for (const [name, meant] of [
      ['WCRM_LIMIT_REED', 'WCRM_LIMIT_READ'],
      ['WCRM_DATABSE_URL', 'WCRM_DATABASE_URL'],
      ['WCRM_POTR', 'WCRM_PORT'],
      ['WCRM_SECRETS', 'WCRM_SECRET'],
      ['WCRM_log_level', 'WCRM_LOG_LEVEL'],
      ['WCRM_TRUSTED_PROXY', 'WCRM_TRUST_PROXY'],
    ] as const)
      assert.throws(() => readConfig({}, { [name]: '1' }), {
        message: `${name}: is not a setting. Did you mean ${meant}?`,
      })
  })

  it('are ignored when they resemble no setting, and named', () => {
    const env = { WCRM_BUILD_OF_OUR_OWN_IMAGE: '7', PATH: '/bin', WCRM_PORT: '80' }
    assert.equal(readConfig({}, env).port, 80)
    assert.deepEqual(listIgnoredVariables(env), ['WCRM_BUILD_OF_OUR_OWN_IMAGE'])
  })

  it('count as absent when they are blank; one that takes a number names itself and the range', () => {
    const defaults = readConfig({}, {})
    const numbers: string[] = []
    for (const { env: name } of settings) {
      if (!name) continue
      for (const blank of ['', '  ']) assert.deepEqual(readConfig({}, { [name]: blank }), defaults, name)
      const refusals = ['letters!', '-1', '0.05'].map((value) => {
        try {
          readConfig({}, { [name]: value })
          return undefined
        } catch (error) {
          return (error as Error).message
        }
      })
      if (!/ from [\d.]+ to \d+/.test(refusals[0] ?? '')) continue
      numbers.push(name)
      assert.ok(refusals[0]!.startsWith(`${name}: must be a `))
      assert.equal(refusals[1], refusals[0])
      // Seconds may have decimals.
      if (name !== 'WCRM_SHUTDOWN_GRACE') assert.equal(refusals[2], refusals[0])
    }
    assert.equal(numbers.length, 18, numbers.join(' '))
    assert.throws(
      () => readConfig({ port: ' ' }, {}),
      /^Error: --port: must be a whole number from 0 to 65535$/,
    )
  })

  it('with a choice name its values, and the public URL says what it takes', () => {
    for (const [name, message] of [
      ['WCRM_LOG_LEVEL', 'must be one of debug, info, warn, error, silent'],
      ['WCRM_PROVIDER', 'must be one of sandbox, none'],
      ['WCRM_PUBLIC_URL', 'must be an http or https URL, such as https://crm.example.com'],
    ] as const)
      assert.throws(() => readConfig({}, { [name]: 'crm.example.com' }), { message: `${name}: ${message}` })
  })

  it('of an address to listen on take a port, an address and a port, or say what they take', () => {
    const read = (value: string) => readConfig({}, { WCRM_METRICS_LISTEN: value }).metricsListen
    assert.deepEqual(read('9464'), { host: undefined, port: 9464 })
    assert.deepEqual(read('10.0.0.5:0'), { host: '10.0.0.5', port: 0 })
    assert.deepEqual(read('[::1]:80'), { host: '::1', port: 80 })
    for (const value of ['x', ':80', '::1', '1.2.3.4', '1.2.3.4:', '1:99999', 'http://a:1'])
      assert.throws(() => read(value), /^Error: WCRM_METRICS_LISTEN: /, value)
  })

  it('of the command line and of Kubernetes may stand beside them', () => {
    const env = {
      WCRM_URL: 'http://localhost',
      WCRM_API_KEY: 'x',
      WCRM_SERVICE_HOST: '10.0.0.1',
      WCRM_PORT_8787_TCP_ADDR: '10.0.0.1',
    }
    readConfig({}, env)
    assert.deepEqual(listIgnoredVariables(env), [])
  })

  it('that the source names are all known', () => {
    const named = globSync('{bin,catalog,cli,mcp,packages/sandbox,server,storage}/**/*.{js,ts,tsx}').flatMap(
      (file) => readFileSync(file, 'utf8').match(/\bWCRM_[A-Z][A-Z_]*[A-Z]\b/g) ?? [],
    )
    assert.ok(named.length > 50)
    for (const name of new Set(named)) assert.deepEqual(listIgnoredVariables({ [name]: '' }), [], name)
  })
})
