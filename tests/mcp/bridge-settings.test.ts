import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { readBridgeSettings, toBridgePath } from '../../mcp/bridge-settings.ts'

describe('Settings of the stdio bridge', () => {
  it('WCRM_READONLY fails closed: reads only at any value but false', () => {
    for (const value of ['1', 'true', '0', 'no', 'off', 'yes', 'x'])
      assert.equal(readBridgeSettings({ WCRM_READONLY: value }).readonly, true, value)
    for (const value of ['false', ' FALSE ', '', '${user_config.readonly}', undefined])
      assert.equal(readBridgeSettings({ WCRM_READONLY: value }).readonly, false, String(value))
  })

  it('become the address of the endpoint', () => {
    assert.equal(toBridgePath(readBridgeSettings({})), '/mcp')
    const all = { WCRM_READONLY: '1', WCRM_TOOLSETS: 'crm,inbox', WCRM_COMPACT: 'yes' }
    assert.equal(
      toBridgePath(readBridgeSettings(all)),
      '/mcp?toolsets=crm%2Cinbox&readonly=true&mode=compact',
    )
  })
})
