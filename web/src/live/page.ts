import '../theme/theme.css';
import './live.css';
import { mount } from 'svelte';
import { themes } from '../charts/theme.svelte';
import Page from './Page.svelte';
import { takeToken } from './link/api';
import { live } from './link/link.svelte';

const place = document.getElementById('page');

if (place) {
  takeToken();
  const scheme = localStorage.getItem('tenfold.theme');
  if (scheme === 'light' || scheme === 'dark') themes.choose(scheme);
  live.start();
  mount(Page, { target: place });
}
