import type { App } from './core/app.ts'
import { type AppOptions, createApp } from './create-app.ts'
import { createSandboxClock } from './clock.ts'
import { createMediaStore } from './media/store.ts'
import { createAdapter } from './provider/adapter.ts'
import { declareBackgroundJobs } from './jobs/background.ts'
import { createProviderWebhook } from './inbound/webhook.ts'
import { createSandbox, type Sandbox } from './sandbox/emulator/sandbox.ts'
import {
  type ProviderConfig,
  resolveProviderSettings,
  SANDBOX_PATH,
  WEBHOOK_PATH,
} from './provider/settings.ts'
import { createSandboxControl, type SandboxControl } from './sandbox/control/server.ts'

/** Request handlers outside of the operations, by path. */
type Mounts = Record<string, (request: Request) => Promise<Response>>

/** A server without its listener: the app, its request handlers and the sandbox. */
export type Service = {
  app: App
  mounts: Mounts
  sandboxControl: SandboxControl
  /** The emulated provider; undefined when a real provider is configured. */
  sandbox: Sandbox | undefined
}

/**
 * `localUrl`: URL at which this process reaches itself; the built-in sandbox and its webhooks use it,
 * regardless of the public URL.
 */
export type ServiceOptions = Omit<AppOptions, 'provider' | 'media'> & {
  provider: ProviderConfig
  localUrl: string
  mediaDir: string
}

/** Wires the app, its background jobs, the provider's webhook and the sandbox. */
export const composeService = ({
  provider: config,
  localUrl,
  mediaDir,
  ...options
}: ServiceOptions): Service => {
  const settings = resolveProviderSettings(config, options.secret, localUrl)
  const app = createApp({ ...options, provider: createAdapter(settings), media: createMediaStore(mediaDir) })
  const sandboxControl = createSandboxControl(app, settings)
  declareBackgroundJobs(app, sandboxControl)
  const sandbox = !settings.builtIn
    ? undefined
    : createSandbox({
        db: app.db,
        now: app.now,
        clock: createSandboxClock(app),
        log: app.log,
        callbackUrl: () => `${localUrl}${WEBHOOK_PATH}`,
        linkBase: app.config.publicUrl,
        token: settings.token,
        appSecret: settings.appSecret,
        verifyToken: settings.verifyToken,
      })
  return {
    app,
    sandboxControl,
    sandbox,
    mounts: {
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
