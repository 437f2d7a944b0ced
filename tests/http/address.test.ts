import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { getClientAddress, parseProxyList } from '../../server/http/address.ts'

describe('The address of a client', () => {
  const addressOf = (trusted: string, peer: string | undefined, forwarded?: string): string | undefined => {
    const request = Object.assign(new Request('http://localhost/'), {
      runtime: { node: { req: { socket: { remoteAddress: peer } } } },
    })
    if (forwarded !== undefined) request.headers.set('x-forwarded-for', forwarded)
    return getClientAddress({ config: { trustedProxies: parseProxyList(trusted) } } as never, request)
  }

  it('is the peer, unless that is a trusted proxy', () => {
    assert.equal(addressOf('', '192.0.2.1', '198.51.100.1'), '192.0.2.1')
    assert.equal(addressOf('10.0.0.0/8', '192.0.2.1', '198.51.100.1'), '192.0.2.1')
    assert.equal(addressOf('10.0.0.0/8', '10.1.2.3', '198.51.100.1'), '198.51.100.1')
    assert.equal(addressOf('10.0.0.0/8', '::ffff:10.1.2.3', '198.51.100.1'), '198.51.100.1')
    assert.equal(addressOf('10.0.0.0/8', '10.1.2.3'), '10.1.2.3')
    assert.equal(addressOf('', undefined), undefined)
  })

  it('is what the last trusted proxy saw: what clients write before it is not believed', () => {
    const trusted = '10.0.0.0/8, 2001:db8::/32'
    assert.equal(addressOf(trusted, '10.1.2.3', '1.1.1.1, 198.51.100.1'), '198.51.100.1')
    assert.equal(
      addressOf(trusted, '10.1.2.3', '1.1.1.1, 198.51.100.1, 10.9.9.9, 2001:db8::7'),
      '198.51.100.1',
    )
    assert.equal(addressOf(trusted, '10.1.2.3', '198.51.100.1:5060'), '198.51.100.1')
    assert.equal(addressOf(trusted, '10.1.2.3', '[2001:DB9::1]:443'), '2001:db9::1')
    assert.equal(addressOf(trusted, '10.1.2.3', '1.1.1.1, unknown, 10.9.9.9'), '10.9.9.9')
    assert.equal(addressOf(trusted, '10.1.2.3', '10.1.1.1, 10.1.1.2'), '10.1.1.1')
  })

  it('a bad item of WCRM_TRUST_PROXY is named', () => {
    for (const item of ['localhost', '10.0.0.0/33', '10.0.0/8', '1.2.3.4:80'])
      assert.throws(() => parseProxyList(`10.0.0.0/8 ${item}`), new RegExp(item.replaceAll('.', '\\.')))
  })
})
