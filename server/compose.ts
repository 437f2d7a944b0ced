import { CHANNELS_PATH, createChannelEndpoint } from './http/channel-endpoint.ts'
import type { App } from './app.ts'
import { type AppOptions, createApp } from './create-app.ts'
import { Problem } from './kernel/problem.ts'
import { problemResponse } from './http/door.ts'
import { createApprovalPages } from './approval-page/page.ts'
import { APPROVAL_PAGES } from './guards/agents/approvals/page-url.ts'
import { createOauthMounts } from './oauth/endpoint.ts'
import { createRoutedProvider } from './domains/health/routed-provider.ts'
import { unconfiguredProblem } from './provider/port.ts'
import { declareBackgroundJobs } from './jobs/background.ts'
import { createProviderWebhook } from './http/provider-webhook.ts'
import { createSandbox, type Sandbox } from '../packages/sandbox/emulator/sandbox.ts'
import {
  type ProviderConfig,
  type ProviderSettings,
  resolveProviderSettings,
  SANDBOX_PATH,
  WEBHOOK_PATH,
} from './provider/settings.ts'
import { createSandboxControl, type SandboxControl } from '../packages/sandbox/control/server.ts'

/** Request handlers outside of the operations, by path. */
type Mounts = Record<string, (request: Request) => Promise<Response>>

/** A server without its listener: the app, its request handlers and the sandbox. */
export type Service = {
  app: App
  mounts: Mounts
  /** Undefined when there is no provider. */
  sandboxControl: SandboxControl | undefined
  /** The emulated provider; undefined when another one is configured, or none. */
  sandbox: Sandbox | undefined
}

/**
 * `localUrl`: URL at which this process reaches itself; the built-in sandbox and its webhooks use it,
 * regardless of the public URL.
 */
export type ServiceOptions = Omit<AppOptions, 'createProvider'> & {
  provider: ProviderConfig
  localUrl: string
}

/** Wires the app, its background jobs, the provider's webhook and the sandbox. */
export const composeService = ({ provider: config, localUrl, ...options }: ServiceOptions): Service => {
  const settings = resolveProviderSettings(config, {
    secret: options.secrets.secrets[0]!.secret,
    localUrl,
    embedded: options.storage.embedded,
  })
  const app = createApp({
    ...options,
    config: { ...options.config, providerTimeout: config.providerTimeout },
    ...(settings ? { createProvider: (guard, getApp) => createRoutedProvider(settings, guard, getApp) } : {}),
    siblings: options.siblings,
  })
  const commonMounts = {
    [`${CHANNELS_PATH}/**`]: createChannelEndpoint(app),
    [`${APPROVAL_PAGES}/**`]: createApprovalPages(app),
    ...createOauthMounts(app),
  }
  if (!settings) {
    declareBackgroundJobs(app, undefined)
    return {
      app,
      sandboxControl: undefined,
      sandbox: undefined,
      mounts: { ...createUnconfiguredMounts(app), ...commonMounts },
    }
  }
  const sandboxControl = createSandboxControl(app, settings)
  declareBackgroundJobs(app, sandboxControl.isSandbox ? sandboxControl.syncChanges : undefined)
  const sandbox = settings.builtIn ? createBuiltInSandbox(app, settings, localUrl) : undefined
  return {
    app,
    sandboxControl,
    sandbox,
    mounts: {
      ...commonMounts,
      [WEBHOOK_PATH]: createProviderWebhook(app, settings),
      '/sandbox': sandboxControl.serve,
      '/sandbox/**': sandboxControl.serve,
      ...(sandbox
        ? {
            [`${SANDBOX_PATH}/**`]: (request: Request) =>
              sandbox.fetch(request, new URL(request.url).pathname.slice(SANDBOX_PATH.length)),
          }
        : {}),
    },
  }
}

/** Its time is real time: the clocks of numbers are moved with those of their workspaces. */
const createBuiltInSandbox = (app: App, settings: ProviderSettings, localUrl: string): Sandbox =>
  createSandbox({
    db: app.db,
    now: app.now,
    log: app.log,
    signals: app.signals,
    callbackUrl: () => `${localUrl}${WEBHOOK_PATH}`,
    linkBase: app.config.publicUrl,
    token: settings.token,
    appSecret: settings.appSecret,
    verifyToken: settings.verifyToken,
  })

/** Without a provider nothing is received, and there is nothing to control. */
const createUnconfiguredMounts = (app: App): Mounts => {
  const refuseWith = (createProblem: () => Problem) => async (): Promise<Response> =>
    problemResponse(app, createProblem())
  const serveNoSandbox = refuseWith(
    () =>
      new Problem(
        'not_found',
        'There is no sandbox: this server has no messaging provider. Start it with WCRM_PROVIDER=sandbox.',
        { reason: 'no_sandbox' },
      ),
  )
  return {
    [WEBHOOK_PATH]: refuseWith(unconfiguredProblem),
    '/sandbox': serveNoSandbox,
    '/sandbox/**': serveNoSandbox,
  }
}
